package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/config"
	"github.com/rollcall-dev/rollcall/internal/eval"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// evalHost is a node of an evaluation: a process of its own, so that it can be
// killed.
type evalHost struct {
	s      *session
	dir    string
	args   []string
	node   Process
	client *api.Client
}

var _ eval.Host = (*evalHost)(nil)

// evalHost starts a node for one model.
func (s *session) evalHost(ctx context.Context, below, model string) (*evalHost, error) {
	dir, err := os.MkdirTemp(below, "model-")
	if err != nil {
		return nil, dataDir(below, err)
	}
	file, isScript := config.Script(model)
	switch {
	case model == goodModel:
		script := filepath.Join(dir, "good.yaml")
		if err := os.WriteFile(script, eval.Good, 0o600); err != nil {
			return nil, dataDir(dir, err)
		}
		model = "scripted:" + script
	case isScript:
		model = "scripted:" + s.path(file)
	}
	settings := filepath.Join(dir, "eval.yaml")
	if err := os.WriteFile(settings, []byte(pricesYAML(s.cfg.Prices)), 0o600); err != nil {
		return nil, dataDir(dir, err)
	}
	h := &evalHost{s: s, dir: dir, args: []string{
		"up", "--background", "--idle-exit", "30m", "--sync", "interval", "--config", settings, "--data", dir, "--model", model,
	}}
	if s.cfg.BaseURL != "" && !isScript {
		h.args = append(h.args, "--base-url", s.cfg.BaseURL)
	}
	if err := h.start(ctx); err != nil {
		return nil, err
	}
	return h, nil
}

// pricesYAML is a settings file that has only the prices.
func pricesYAML(prices map[string]domain.Price) string {
	text := "prices: {}\n"
	if len(prices) > 0 {
		text = "prices:\n"
	}
	for name, p := range prices {
		text += fmt.Sprintf("  %q: {input: %s, cached: %s, output: %s}\n", name, micros(p.Input), micros(p.Cached), micros(p.Output))
	}
	return text
}

func micros(n uint64) string { return fmt.Sprintf("%d.%06d", n/1_000_000, n%1_000_000) }

func (h *evalHost) start(ctx context.Context) error {
	logFile := filepath.Join(h.dir, nodefile.LOG)
	before := sizeOf(logFile)
	child, err := h.s.Spawn(Child{
		Args: h.args, Log: logFile, Detached: true,
		// What the user has set is for the user's own teams, but for the key.
		Env: []string{"NATS_URL=", "NATS_CONTEXT=", "NATS_CREDS=", "NATS_CA=", "OPENAI_API_KEY=" + h.s.cfg.Key.Reveal(), "OPENAI_BASE_URL="},
	})
	if err != nil {
		return domain.Refuse("node-not-started", "the node of the evaluation cannot be started", err.Error(), "see that the program can start itself again")
	}
	h.node = child
	wait, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	for {
		if info, err := nodefile.Read(h.dir); err == nil && info.PID == child.PID() {
			break
		}
		select {
		case <-child.Done():
			return notStarted(logFile, before)
		case <-time.After(5 * time.Millisecond):
		case <-wait.Done():
			h.stop()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return notStarted(logFile, before)
		}
	}
	h.client, err = api.Connect(api.Target{Dir: h.dir}, "main", "rollcall eval")
	if err != nil {
		h.stop()
	}
	return err
}

// Client implements eval.Host.
func (h *evalHost) Client() *api.Client { return h.client }

// Restart implements eval.Host: SIGKILL, and another process.
func (h *evalHost) Restart(ctx context.Context) error {
	h.client.Close()
	if err := h.node.Kill(); err != nil {
		return fmt.Errorf("kill the node: %w", err)
	}
	<-h.node.Done()
	return h.start(ctx)
}

// Close implements eval.Host.
func (h *evalHost) Close() error {
	h.client.Close()
	h.stop()
	return nil
}

func (h *evalHost) stop() {
	_ = h.node.Stop() // it may have ended by itself
	select {
	case <-h.node.Done():
	case <-time.After(drainTime):
		_ = h.node.Kill()
		<-h.node.Done()
	}
}
