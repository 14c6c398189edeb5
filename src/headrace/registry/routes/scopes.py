"""`/config` and `/mode`: for all, for a context, or for a subject."""

from starlette.responses import Response

from headrace.http.operations import Parameter
from headrace.registry import errors
from headrace.registry.deciding import scopes
from headrace.registry.deciding.scopes import ConfigUpdate
from headrace.registry.model.records import ConfigValue
from headrace.registry.routes.answers import ModeBody, config_answer, config_echo
from headrace.registry.routes.operations import Routes, operation
from headrace.registry.routes.requests import Call
from headrace.serdes.subject_names import is_valid_subject

_TO_GLOBAL = Parameter(
    "defaultToGlobal", "The inherited value if nothing is set here.", type="boolean"
)
_FORCE = Parameter("force", "Allow import mode despite existing schemas.", type="boolean")
_RECURSIVE = Parameter("recursive", "Include the subjects of the context.", type="boolean")


class SettingRoutes(Routes):
    """The endpoints of settings."""

    @operation("GET /config", _TO_GLOBAL, answer=ConfigValue)
    @operation("GET /config/{subject}", _TO_GLOBAL, answer=ConfigValue)
    async def config(self, call: Call) -> Response:
        """Get the settings of a subject, a context or all."""
        if call.flag("defaultToGlobal"):
            return call.answer(config_answer(self.state.config_in_scope(call.scope)))
        found = self.state.config(call.scope)
        if found is None:
            raise errors.NoSubjectLevel(call.scope or "")
        return call.answer(config_answer(found))

    @operation("PUT /config", answer=ConfigUpdate, body=ConfigUpdate)
    @operation("PUT /config/{subject}", answer=ConfigUpdate, body=ConfigUpdate)
    async def update_config(self, call: Call) -> Response:
        """Change the settings of a subject, a context or all."""
        update = await self.body(call, ConfigUpdate)
        scopes.check_config(update)
        scope = self._settable(call)
        return await self.written(
            call,
            lambda: scopes.update_config(self.state, scope, update),
            lambda config: call.answer(config_echo(config)),
        )

    @operation("DELETE /config", answer=ConfigValue)
    @operation("DELETE /config/{subject}", answer=ConfigValue)
    async def delete_config(self, call: Call) -> Response:
        """Remove the settings of a subject, a context or all."""
        scope = call.scope
        return await self.written(
            call,
            lambda: scopes.delete_config(self.state, scope),
            lambda config: call.answer(config_answer(config)),
        )

    @operation("GET /mode", _TO_GLOBAL, answer=ModeBody)
    @operation("GET /mode/{subject}", _TO_GLOBAL, answer=ModeBody)
    async def mode(self, call: Call) -> Response:
        """Get the mode of a subject, a context or all."""
        if call.flag("defaultToGlobal"):
            return call.answer(ModeBody(self.state.mode_in_scope(call.scope)))
        found = self.state.mode(call.scope)
        if found is None:
            raise errors.NoSubjectMode(call.scope or "")
        return call.answer(ModeBody(found))

    @operation("PUT /mode", _FORCE, answer=ModeBody, body=ModeBody)
    @operation("PUT /mode/{subject}", _FORCE, answer=ModeBody, body=ModeBody)
    async def set_mode(self, call: Call) -> Response:
        """Change the mode of a subject, a context or all."""
        body = await self.body(call, ModeBody)
        scope, force = self._settable(call), call.flag("force")
        mode = None if body.mode is None else scopes.parsed_mode(body.mode, scope)
        self._check_mutable()
        return await self.written(
            call,
            lambda: scopes.set_mode(self.state, scope, mode, force=force),
            lambda _: call.answer(body),
        )

    @operation("DELETE /mode", _RECURSIVE, answer=ModeBody)
    @operation("DELETE /mode/{subject}", _RECURSIVE, answer=ModeBody)
    async def delete_mode(self, call: Call) -> Response:
        """Remove the mode of a subject, a context or all."""
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
            raise errors.InvalidSubject(subject)
        return call.scope

    def _check_mutable(self) -> None:
        if not self.registry.settings.mode_mutability:
            raise errors.NotPermitted("Mode changes are not allowed")
