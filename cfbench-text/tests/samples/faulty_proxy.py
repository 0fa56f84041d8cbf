"""A proxy on 127.0.0.1 that passes requests on to a chat server, and fails where a test chooses."""

import json

import httpx
from fake_endpoint import Server


class FaultyProxy:
    """Before the server: ``fault(body, number)`` returns a response in place of the server's, or None.

    After it: ``changed(response)`` returns the decoded response as the client gets it.

    Attributes:
        received: the bodies that clients sent. answered: those to which the server's response was returned.
    """

    def __init__(self, upstream):
        self.reset()
        self._upstream = f"{upstream}/chat/completions"
        self._client = httpx.Client(timeout=300, trust_env=False)
        self._server = Server(self._reply)
        self.url = self._server.url

    def reset(self):
        self.fault, self.changed = lambda body, number: None, lambda response: response
        self.received, self.answered = [], []

    def _reply(self, body, attempt):
        self.received.append(body)
        failed = self.fault(body, len(self.received))
        if failed is not None:
            return failed
        found = self._client.post(self._upstream, json=body)
        if found.status_code != 200:
            return found.status_code, {}, found.content
        self.answered.append(body)
        return 200, {}, self.changed(found.json())

    def close(self):
        self._server.close()
        self._client.close()


def prompts(bodies):
    return [body["messages"][-1]["content"] for body in bodies]


def words(response, edit):
    """The response with another text."""
    choice = response["choices"][0]
    message = choice["message"] | {"content": edit(choice["message"]["content"])}
    return {**response, "choices": [{**choice, "message": message}]}


def rejected(message):
    return 400, {}, {"error": {"message": message, "code": 400}}


DOWN = (503, {}, json.dumps({"error": "down"}).encode())
