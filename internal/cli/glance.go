package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rollcall-dev/rollcall/internal/api"
)

// glanceDocument is what `rollcall --json` prints.
type glanceDocument struct {
	Version string `json:"version"`
	// Model that a team would ask: the running node's, else the one set here;
	// empty when there is none.
	Model string `json:"model"`
	// Node is the running node's name; empty when none answers.
	Node string `json:"node,omitempty"`
	// Data is the data directory, Made whether it exists.
	Data string `json:"data"`
	Made bool   `json:"made"`
}

// glance is what rollcall alone says: five lines.
func (s *session) glance(ctx context.Context) error {
	doc := glanceDocument{Version: s.Version, Model: s.cfg.Model, Data: s.cfg.Data}
	model, node := s.modelHere(), "no node is running"
	if c, err := s.connect(); err == nil {
		c.Patience = 300 * time.Millisecond
		if info, err := c.Info(ctx); err == nil {
			doc.Node, doc.Model = info.Node, info.Settings.Model
			node = "node " + info.Node + " is running"
			model = modelThere(info.Settings)
		}
	}
	_, err := os.Stat(doc.Data)
	doc.Made = err == nil
	return s.print(doc, func(w io.Writer) {
		data := doc.Data
		if !doc.Made {
			data += " (not made yet)"
		}
		fmt.Fprintf(w, "rollcall %s\n", doc.Version)
		fmt.Fprintf(w, "model  %s\n", model)
		fmt.Fprintf(w, "node   %s\n", node)
		fmt.Fprintf(w, "data   %s\n", data)
		fmt.Fprintf(w, "try    rollcall demo  ·  rollcall run \"…\"  ·  rollcall --help\n")
	})
}

// modelHere says what a node started here would ask.
func (s *session) modelHere() string {
	switch {
	case s.scripted():
		return "model " + s.cfg.Model
	case s.cfg.Key.Set():
		return cmp.Or(s.cfg.Model, defaultModel) + ", API key from " + s.cfg.Origin("api_key")
	case s.cfg.BaseURL != "":
		return cmp.Or(s.cfg.Model, "none chosen") + ", no API key, base URL " + s.cfg.BaseURL
	}
	return "no API key (set OPENAI_API_KEY)"
}

// modelThere says what the running node asks.
func modelThere(n api.NodeSettings) string {
	if n.Model == "" {
		return "none: the node was started without one"
	}
	text := n.Model + " (the node's)"
	if n.BaseURL != "" {
		text += ", base URL " + n.BaseURL
	}
	return text
}
