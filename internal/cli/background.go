package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// startWait bounds the wait for a background node: a big store takes a while
// to recover.
const startWait = 60 * time.Second

// node gives a client of a running node, starting one in the background when
// none runs here.
func (s *session) node(ctx context.Context) (c *api.Client, started bool, err error) {
	if s.cfg.NATS.Set() {
		c, err = s.connect()
		return c, false, err
	}
	if c, ok := s.reach(ctx); ok {
		return c, false, s.sameSettings(ctx, c)
	}
	if c, err := s.awaitHolder(ctx); c != nil || err != nil {
		if err == nil {
			err = s.sameSettings(ctx, c)
		}
		return c, false, err
	}
	if err := s.needModel(); err != nil {
		return nil, false, err
	}
	if err := s.checkScript(); err != nil {
		return nil, false, err
	}
	s.say("starting a node in the background (data in %s)", s.cfg.Data)
	c, err = s.spawnNode(ctx)
	return c, true, err
}

// reach connects to the node that runs here and is satisfied by an answer.
func (s *session) reach(ctx context.Context) (*api.Client, bool) {
	c, err := s.reconnect()
	if err != nil {
		return nil, false
	}
	patience := c.Patience
	c.Patience = 500 * time.Millisecond
	_, err = c.Info(ctx)
	c.Patience = patience
	return c, err == nil
}

// spawnNode starts `up --background` as a process of its own and waits until a
// node answers: that one, or another that was faster.
func (s *session) spawnNode(ctx context.Context) (*api.Client, error) {
	if err := os.MkdirAll(s.cfg.Data, 0o700); err != nil {
		return nil, dataDir(s.cfg.Data, err)
	}
	logFile := filepath.Join(s.cfg.Data, nodefile.LOG)
	before := sizeOf(logFile)
	child, err := s.Spawn(Child{Args: s.upArgs(), Log: logFile, Detached: true})
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC) {
		return nil, dataDir(s.cfg.Data, err)
	}
	if err != nil {
		return nil, domain.Refuse("node-not-started", "the background node cannot be started", err.Error(), "start one by hand with rollcall up")
	}
	given := ctx
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	ended := child.Done()
	for {
		if c, ok := s.reach(ctx); ok {
			return c, nil
		}
		select {
		case <-ended:
			// It may have lost the race for the directory; the winner answers soon.
			ended = nil
			if !nodefile.Held(s.cfg.Data) {
				return nil, notStarted(logFile, before)
			}
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			if given.Err() != nil { // the user's patience, not ours
				return nil, given.Err()
			}
			return nil, notStarted(logFile, before)
		}
	}
}

// upArgs are the arguments of the background node: the settings as they were
// given here, flags included.
func (s *session) upArgs() []string {
	args := []string{"up", "--background", "--data", s.cfg.Data}
	if s.cfg.File != "" {
		args = append(args, "--config", s.cfg.File)
	}
	for _, shown := range s.cfg.Show() {
		flag, ok := strings.CutPrefix(shown.Origin, "--")
		if ok && flag != "data" && flag != "config" {
			args = append(args, "--"+flag, shown.Value)
		}
	}
	return args
}

// notStarted tells the last words of the node's log, of what came after the
// first bytes: an earlier node's words explain nothing.
func notStarted(logFile string, before int64) error {
	why := "it said nothing; its log is in " + logFile
	if data, err := os.ReadFile(logFile); err == nil {
		data = data[min(before, int64(len(data))):]
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		if last := strings.Join(lines[max(0, len(lines)-5):], "\n"); last != "" {
			why = last
		}
	}
	return domain.Refuse("node-not-started", "the background node did not start", why, "mend the cause, or start one by hand with rollcall up")
}

func sizeOf(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}

func dataDir(dir string, err error) error {
	return domain.Refuse("data-directory-unusable", fmt.Sprintf("the data directory %s cannot be used", dir), err.Error(),
		"choose another with --data or ROLLCALL_DATA")
}

// defaultModel is used with the API that the key is usually for, when no model
// is chosen.
const defaultModel = "gpt-4o-mini"

// needModel completes the model setting, or says that there is none: a team
// without a model would only fail later.
func (s *session) needModel() error {
	if s.cfg.Model != "" {
		return nil
	}
	if s.cfg.Key.Set() && s.cfg.BaseURL == "" {
		s.cfg.Model = defaultModel
		return nil
	}
	if s.cfg.BaseURL != "" {
		return domain.Refuse("model-missing", "no model is chosen", "the base URL is "+s.cfg.BaseURL, "name one with --model or ROLLCALL_MODEL")
	}
	return domain.Refuse("model-missing", "there is no model to ask", "neither a key nor a model is set",
		"export OPENAI_API_KEY=… (and ROLLCALL_MODEL), or see it work without a key: rollcall demo")
}
