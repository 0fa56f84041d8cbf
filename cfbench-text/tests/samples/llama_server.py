"""``python llama_server.py MODEL.gguf``: llama.cpp's own server on 127.0.0.1.

It prints its address, and ends with its standard input.

One slot and no reuse of earlier prompts: the same request has the same response, whatever came before.
"""

import sys
import threading

import xllamacpp

LONGEST = 1800
"""Seconds after which it ends by itself."""


def main():
    options = xllamacpp.CommonParams()
    options.model.path = sys.argv[1]
    options.hostnames, options.port = ["127.0.0.1"], 0
    options.n_parallel, options.n_ctx = 1, 4096
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = 1
    options.cache_prompt, options.cache_ram_mib = False, 0
    server = xllamacpp.Server(options)
    print(server.listening_address, flush=True)
    ended = threading.Thread(target=sys.stdin.read, daemon=True)
    ended.start()
    ended.join(LONGEST)


if __name__ == "__main__":
    main()
