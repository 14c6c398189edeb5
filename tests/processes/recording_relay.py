"""A TCP relay that records every byte that passes, in both directions."""

import socket
import threading
from typing import Self

from tests.processes.nodes import HOST


class RecordingRelay:
    """Relays connections to a port of this machine."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._listener = socket.create_server((HOST, 0))
        self._sockets = [self._listener]
        self._lock = threading.Lock()
        self.port = int(self._listener.getsockname()[1])
        self.recorded = bytearray()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for each in self._sockets:
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                target = socket.create_connection((HOST, self._target_port))
            except OSError:
                return
            self._sockets += [client, target]
            for ends in ((client, target), (target, client)):
                threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                with self._lock:
                    self.recorded += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return
