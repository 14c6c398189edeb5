"""A TCP relay that can lose an answer to a request that has reached the broker."""

import contextlib
import socket
import struct
import threading
from typing import Self

from tests.processes.nodes import HOST, free_port

PRODUCE = 0
HELD_SECONDS_MAX = 60


class LossyProxy:
    """Relays every connection to a port; cuts one instead of passing on a Produce answer.

    `losses` is how many answers are still to be lost. While `may_answer` is cleared, answers to
    Produce requests are held back, and `is_holding` is set.
    """

    def __init__(self, *, losses: int, port: int = 0) -> None:
        self.port = port or free_port()
        self.target_port = 0
        self.losses = losses
        self.lock = threading.Lock()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.is_holding = threading.Event()
        self.listener = socket.create_server((HOST, self.port))
        self.sockets = [self.listener]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for each in self.sockets:
            close(each)

    def accept(self) -> None:
        while True:
            try:
                client, _address = self.listener.accept()
                broker = socket.create_connection((HOST, self.target_port))
            except OSError:
                return
            self.sockets += [client, broker]
            threading.Thread(target=self.relay, args=(client, broker), daemon=True).start()

    def relay(self, client: socket.socket, broker: socket.socket) -> None:
        """Pass one request, wait for its answer, pass that: simple, and in order."""
        try:
            while True:
                request = receive_frame(client)
                broker.sendall(request)
                (api_key,) = struct.unpack_from(">h", request, 4)
                answer = receive_frame(broker)
                if api_key == PRODUCE and not self.may_answer.is_set():
                    self.is_holding.set()
                    self.may_answer.wait(HELD_SECONDS_MAX)
                if api_key == PRODUCE and self.takes_a_loss():
                    break
                client.sendall(answer)
        except OSError:
            pass
        close(client)
        close(broker)

    def takes_a_loss(self) -> bool:
        with self.lock:
            self.losses -= 1
            return self.losses >= 0


def receive_frame(source: socket.socket) -> bytes:
    """One frame with its size in front."""
    head = receive_exactly(source, 4)
    (size,) = struct.unpack(">i", head)
    return head + receive_exactly(source, size)


def receive_exactly(source: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = source.recv(size - len(data))
        if not chunk:
            raise ConnectionError("the other side closed")
        data += chunk
    return bytes(data)


def close(each: socket.socket) -> None:
    """Also wakes a thread that waits on the socket."""
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
