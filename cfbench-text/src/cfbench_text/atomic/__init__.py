"""The parts of the extractor ``atomic``: segments of texts, frames of explanations, filters, sentiment and topics."""
