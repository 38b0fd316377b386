package cli

import (
	"github.com/rollcall-dev/rollcall/internal/config"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
)

// scripted reports whether the model of the settings is a script.
func (s *session) scripted() bool { return scriptedModel(s.cfg.Model) }

func scriptedModel(model string) bool {
	_, ok := config.Script(model)
	return ok
}

// checkScript refuses a script that no node could serve, before one is started
// for it.
func (s *session) checkScript() error {
	file, ok := config.Script(s.cfg.Model)
	if !ok {
		return nil
	}
	if _, err := scripted.Load(file); err != nil {
		return scripted.Unfit(err)
	}
	return nil
}
