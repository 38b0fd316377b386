package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/config"
	"github.com/rollcall-dev/rollcall/internal/model"
)

// onlineTime bounds the call of doctor --online.
const onlineTime = 30 * time.Second

// checkModel asks the model one word, as a node started with the settings of
// here would.
func (s *session) checkModel(ctx context.Context) []api.Check {
	c := api.Check{Name: "model, tried", Level: api.OK}
	if s.scripted() {
		if err := s.checkScript(); err != nil {
			r := api.AsRefusal(err)
			return []api.Check{{Name: c.Name, Level: api.Fail, Found: r.What + ": " + r.Why + " [" + r.Code + "]", Fix: r.Try}}
		}
		file, _ := config.Script(s.cfg.Model)
		c.Found = "a script that can be served: " + file
		return []api.Check{c}
	}
	name := s.cfg.Model
	if name == "" && s.cfg.BaseURL == "" && s.cfg.Key.Set() {
		name = defaultModel
	}
	if name == "" {
		return []api.Check{{Name: c.Name, Level: api.Warn, Found: "no model is chosen here", Fix: "name one with --model or ROLLCALL_MODEL"}}
	}
	ctx, cancel := context.WithTimeout(ctx, onlineTime)
	defer cancel()
	client := model.New(model.Config{BaseURL: s.cfg.BaseURL, Key: s.cfg.Key.Reveal()})
	defer client.Close()
	began := time.Now()
	_, err := client.Call(ctx, model.Caller{}, model.Request{Model: name, Messages: []model.Message{{Role: "user", Content: "Answer with the word yes."}}}, nil)
	if failed, ok := errors.AsType[*model.Error](err); ok {
		return []api.Check{{Name: c.Name, Level: api.Fail, Found: failed.What + ": " + failed.Why + " [" + failed.Code + "]", Fix: failed.Try}}
	}
	if err != nil {
		return []api.Check{{Name: c.Name, Level: api.Fail, Found: fmt.Sprintf("%s did not answer in %v", name, onlineTime), Fix: "look at the model server, or ask again later"}}
	}
	c.Found = fmt.Sprintf("%s answers in %v", name, max(time.Since(began).Round(time.Millisecond), time.Millisecond))
	return []api.Check{c}
}
