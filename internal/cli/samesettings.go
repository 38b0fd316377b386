package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
)

// sameSettings refuses to go on when this command line was given other
// settings than the running node: it would ask another model, or show another
// key, than its user believes. What was not set here is the node's to say. A
// plain model name is no difference: it is pinned to the conversation.
func (s *session) sameSettings(ctx context.Context, c *api.Client) error {
	if s.cfg.NATS.Set() {
		return nil // the node is somebody else's
	}
	info, err := c.Info(ctx)
	if err != nil {
		return err
	}
	here := api.SettingsOf(s.cfg.Model, s.cfg.BaseURL, s.cfg.Key.Reveal(), s.cfg.SyncAlways)
	there := info.Settings
	differs := ""
	switch {
	case here.Model != "" && here.Model != there.Model && (s.scripted() || there.Model == "" || scriptedModel(there.Model)):
		differs = fmt.Sprintf("its model is %s, here it is %s", cmp.Or(there.Model, "none"), here.Model)
	case here.BaseURL != "" && here.BaseURL != there.BaseURL:
		differs = fmt.Sprintf("its model server is %s, here it is %s", cmp.Or(there.BaseURL, "the default"), here.BaseURL)
	case here.KeyMark != "" && here.KeyMark != there.KeyMark && !scriptedModel(there.Model):
		differs = "it was started with another OPENAI_API_KEY"
	case s.cfg.Origin("sync") != "default" && here.Sync != there.Sync:
		differs = fmt.Sprintf("it runs with sync: %s", there.Sync)
	default:
		return nil
	}
	return domain.Refuse("node-runs", "a node is running with other settings", differs,
		"rollcall down stops it (its teams are set down in good order), then try again; or use another data directory with --data")
}
