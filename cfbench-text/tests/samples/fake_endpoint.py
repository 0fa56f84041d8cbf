"""A chat server on 127.0.0.1 whose responses a test chooses."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cfbench_text.models.chat_types import ChatSource, Prompt
from cfbench_text.models.endpoint import Endpoint


class Server:
    """Responds with ``reply(body, attempt)`` -> (status, headers, body), or a number of seconds to stay silent."""

    def __init__(self, reply):
        self.requested, self.at_once, self.most, self.lock = [], 0, 0, threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with outer.lock:
                    outer.at_once += 1
                    outer.most = max(outer.most, outer.at_once)
                    attempt = sum(one["messages"] == body["messages"] for one in outer.requested)
                    outer.requested.append(body)
                    outer.headers = dict(self.headers)
                try:
                    found = reply(body, attempt)
                    if isinstance(found, float):
                        time.sleep(found)
                        return
                finally:  # before the answer leaves, after which the client may ask again
                    with outer.lock:
                        outer.at_once -= 1
                status, headers, content = found
                content = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in {"content-length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args): ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def said(text, cut=False, logprobs=None, usage=None):
    choice = {"message": {"content": text}, "finish_reason": "length" if cut else "stop"}
    counted = (
        {}
        if usage is None
        else {"usage": dict(zip(("prompt_tokens", "completion_tokens"), usage, strict=True))}
    )
    return 200, {}, {"choices": [choice | ({"logprobs": logprobs} if logprobs else {})], **counted}


def requested(server, texts, pauses=None, **options):
    """The completions of texts, by their places; nothing waits for real, ``pauses`` lists for how long it would."""
    source = ChatSource(endpoint=server.url, model="m", **options)
    endpoint = Endpoint(source, pauses.append if pauses is not None else lambda seconds: None)
    return dict(endpoint.write([Prompt("", text) for text in texts], 10))
