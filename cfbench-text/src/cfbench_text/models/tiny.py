"""Models with a few thousand random weights, written to disk, that tests load in place of real models.

Their output is meaningless; files, tokenizers, special tokens and labels are like those of real models.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORDS = """the a user would appreciate this product because may dislike that seems indifferent to sound is good bad
price low high strings break tone rich easy text statement 1 0 . , : ? and they however""".split()  # noqa: SIM905
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]

CHAT = "{% for m in messages %}{{ m.content }} {% endfor %}"


def tokenizer(
    folder: Path, special: bool = True, template: str | None = None, token_types: bool = True
) -> int:
    """Words at blanks, between [CLS] and [SEP]; gives the size of its vocabulary."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: place for place, word in enumerate([*SPECIAL, *WORDS])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    if special:
        ends = [("[CLS]", 2), ("[SEP]", 3)]
        made.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
        )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    whole = PreTrainedTokenizerFast(
        tokenizer_object=made,
        **names,
        eos_token="[SEP]",
        model_max_length=512,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"]
        if special and token_types
        else ["input_ids", "attention_mask"],
    )
    whole.chat_template = template
    whole.save_pretrained(folder)
    return len(vocabulary)


def encoder(folder: Path) -> Path:
    from transformers import BertModel

    BertModel(_bert(tokenizer(folder))).save_pretrained(folder)
    return folder


def roberta(folder: Path) -> Path:
    """Its tokens are bytes, so that a word has its blank as a token of its own."""
    import torch
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizer

    torch.manual_seed(0)
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(ByteLevel.alphabet())]
    made = RobertaTokenizer(
        vocab={name: place for place, name in enumerate(names)}, merges=[], model_max_length=510
    )
    made.save_pretrained(folder)
    config = RobertaConfig(
        vocab_size=len(names),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=512,
        initializer_range=0.5,
    )
    RobertaModel(config).save_pretrained(folder)
    return folder


def classifier(folder: Path, labels: list[str], order: list[int] | None = None) -> Path:
    """An NLI model; ``order``: the rows of its last layer are put in another order, as the labels are."""
    import torch
    from transformers import BertForSequenceClassification

    config = _bert(tokenizer(folder))
    config.id2label, config.label2id = dict(enumerate(labels)), {name: at for at, name in enumerate(labels)}
    model = BertForSequenceClassification(config)
    if order is not None:
        head = model.classifier
        with torch.no_grad():
            head.weight.copy_(head.weight[order].clone())
            head.bias.copy_(head.bias[order].clone())
    model.save_pretrained(folder)
    return folder


def token_classifier(folder: Path, labels: int = 2) -> Path:
    """A ModernBERT that gives each token a class, as LettuceDetect's models are."""
    import torch
    from transformers import ModernBertConfig, ModernBertForTokenClassification

    size = tokenizer(folder, token_types=False)
    torch.manual_seed(0)
    config = ModernBertConfig(
        vocab_size=size,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=512,
        initializer_range=0.5,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        cls_token_id=2,
        sep_token_id=3,
        num_labels=labels,
        reference_compile=False,
    )
    ModernBertForTokenClassification(config).save_pretrained(folder)
    return folder


def _bert(size: int) -> Any:
    import torch
    from transformers import BertConfig

    torch.manual_seed(0)
    return BertConfig(
        vocab_size=size,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=512,
        initializer_range=0.5,
    )


def causal(folder: Path, template: str | None = CHAT, context: int = 2048) -> Path:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    size = tokenizer(folder, special=False, template=template)
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=context,
        initializer_range=0.5,
        eos_token_id=3,
        pad_token_id=0,
        bos_token_id=2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def encoder_decoder(folder: Path) -> Path:
    import torch
    from transformers import BartConfig, BartForConditionalGeneration

    torch.manual_seed(0)
    size = tokenizer(folder)
    config = BartConfig(
        vocab_size=size,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=512,
        init_std=0.5,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        decoder_start_token_id=3,
        forced_eos_token_id=3,
    )
    BartForConditionalGeneration(config).save_pretrained(folder)
    return folder


def t5(folder: Path) -> Path:
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(10)
    size = tokenizer(folder, special=False)
    config = T5Config(
        vocab_size=size,
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=2,
        num_heads=2,
        initializer_factor=2.0,
        pad_token_id=0,
        eos_token_id=3,
        decoder_start_token_id=0,
    )
    model = T5ForConditionalGeneration(config)
    with torch.no_grad():
        model.shared.weight[:3] = 0  # so that it writes words, and not [UNK]
    model.save_pretrained(folder)
    return folder
