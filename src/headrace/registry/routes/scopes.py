"""`/config` and `/mode`: for all, for a context, or for a subject."""

from starlette.requests import Request
from starlette.responses import Response

from headrace.http.operations import Operation, Parameter
from headrace.registry.deciding import scopes
from headrace.registry.deciding.scopes import ConfigUpdate
from headrace.registry.errors import (
    InvalidSubject,
    NoSubjectLevel,
    NoSubjectMode,
    NotPermitted,
)
from headrace.registry.routes.answers import ConfigAnswer, ModeBody, config_answer, config_echo
from headrace.registry.routes.operations import (
    INVALID,
    NOT_FOUND,
    NOT_WRITTEN,
    SUBJECT,
    Answering,
    operation,
)
from headrace.registry.routes.requests import Call
from headrace.serdes.subject_names import is_valid_subject

_TO_GLOBAL = Parameter("defaultToGlobal", "What counts, if nothing is set here.", type="boolean")
_FORCE = Parameter("force", "Allow import mode although there are schemas.", type="boolean")
_RECURSIVE = Parameter("recursive", "Also of the subjects in the context.", type="boolean")


class SettingRoutes(Answering):
    """The endpoints of settings."""

    def operations(self) -> list[Operation]:
        written = {**NOT_FOUND, **INVALID, **NOT_WRITTEN}
        described: list[Operation] = []
        for ending, parameters, whose in (("", (), "all"), ("/{subject}", (SUBJECT,), "a subject")):
            described += [
                operation(
                    "GET",
                    f"/config{ending}",
                    self.config,
                    f"The settings of {whose}.",
                    (*parameters, _TO_GLOBAL),
                    ConfigAnswer,
                    NOT_FOUND,
                ),
                operation(
                    "PUT",
                    f"/config{ending}",
                    self.update_config,
                    f"Change the settings of {whose}.",
                    parameters,
                    ConfigUpdate,
                    written,
                    ConfigUpdate,
                ),
                operation(
                    "DELETE",
                    f"/config{ending}",
                    self.delete_config,
                    f"Take back the settings of {whose}.",
                    parameters,
                    ConfigAnswer,
                    written,
                ),
                operation(
                    "GET",
                    f"/mode{ending}",
                    self.mode,
                    f"The mode of {whose}.",
                    (*parameters, _TO_GLOBAL),
                    ModeBody,
                    NOT_FOUND,
                ),
                operation(
                    "PUT",
                    f"/mode{ending}",
                    self.set_mode,
                    f"Change the mode of {whose}.",
                    (*parameters, _FORCE),
                    ModeBody,
                    written,
                    ModeBody,
                ),
                operation(
                    "DELETE",
                    f"/mode{ending}",
                    self.delete_mode,
                    f"Take back the mode of {whose}.",
                    (*parameters, _RECURSIVE),
                    ModeBody,
                    written,
                ),
            ]
        return described

    async def config(self, request: Request) -> Response:
        call = Call(request)
        if call.flag("defaultToGlobal"):
            return call.answer(config_answer(self.state.config_in_scope(call.scope)))
        found = self.state.config(call.scope)
        if found is None:
            raise NoSubjectLevel(call.scope or "")
        return call.answer(config_answer(found))

    async def update_config(self, request: Request) -> Response:
        call = Call(request)
        update = await call.body(ConfigUpdate, self.registry.settings.max_request_body_size)
        scopes.check_config(update)
        scope = self._settable(call)
        return await self.written(
            call,
            lambda: scopes.update_config(self.state, scope, update),
            lambda config: call.answer(config_echo(config)),
        )

    async def delete_config(self, request: Request) -> Response:
        call = Call(request)
        scope = call.scope
        return await self.written(
            call,
            lambda: scopes.delete_config(self.state, scope),
            lambda config: call.answer(config_answer(config)),
        )

    async def mode(self, request: Request) -> Response:
        call = Call(request)
        if call.flag("defaultToGlobal"):
            return call.answer(ModeBody(self.state.mode_in_scope(call.scope)))
        found = self.state.mode(call.scope)
        if found is None:
            raise NoSubjectMode(call.scope or "")
        return call.answer(ModeBody(found))

    async def set_mode(self, request: Request) -> Response:
        call = Call(request)
        body = await call.body(ModeBody, self.registry.settings.max_request_body_size)
        scope, force = self._settable(call), call.flag("force")
        mode = None if body.mode is None else scopes.parsed_mode(body.mode, scope)
        self._check_mutable()
        return await self.written(
            call,
            lambda: scopes.set_mode(self.state, scope, mode, force=force),
            lambda _: call.answer(body),
        )

    async def delete_mode(self, request: Request) -> Response:
        call = Call(request)
        scope, recursive = call.scope, call.flag("recursive")
        self._check_mutable()
        return await self.written(
            call,
            lambda: scopes.delete_mode(self.state, scope, recursive=recursive),
            lambda mode: call.answer(ModeBody(mode)),
        )

    def _settable(self, call: Call) -> str | None:
        subject = call.path.get("subject")
        if subject is not None and not is_valid_subject(subject, for_settings=True):
            raise InvalidSubject(subject)
        return call.scope

    def _check_mutable(self) -> None:
        if not self.registry.settings.mode_mutability:
            raise NotPermitted("Mode changes are not allowed")
