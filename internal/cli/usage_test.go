package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
)

// An error of usage names the command with the group it is of, and speaks our
// words.
func TestUsageErrorsNameTheCommand(t *testing.T) {
	for line, says := range map[string][]string{
		"auth init":                       {"rollcall auth init cannot be run", "rollcall auth init DIR [flags]"},
		"node init x":                     {"rollcall node init cannot be run"},
		"node drain":                      {"rollcall node drain cannot be run", "rollcall node drain NODE [flags]"},
		"node ls x":                       {"rollcall node ls cannot be run", "rollcall node ls [flags]"},
		"up --cluster a --join nats:b":    {"--cluster and --join were given", "leave one of them out"},
		"verify x --export f --auditor a": {"--auditor and --export were given"},
	} {
		c := newConsole(t, strings.Fields(line)...)
		c.run(t, api.ExitUsage)
		for _, word := range says {
			if !strings.Contains(c.err.String(), word) {
				t.Errorf("%s does not say %q: %s", line, word, c.err.String())
			}
		}
		if strings.Contains(c.err.String(), "group [") {
			t.Errorf("%s: %s", line, c.err.String())
		}
	}
}

// A command that has flags of its own says so where it says how it is used.
func TestUsageSaysFlags(t *testing.T) {
	s := &session{App: &newConsole(t).App}
	var look func(*cobra.Command)
	look = func(c *cobra.Command) {
		own := 0
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				own++
			}
		})
		if own > 0 && c.HasParent() && !strings.HasSuffix(c.UseLine(), "[flags]") {
			t.Errorf("%q has flags and does not say so", c.UseLine())
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(s.root())
}

func TestPartitionsOnTheirWay(t *testing.T) {
	held := make([]int, 0, domain.Partitions)
	for p := range domain.Partitions {
		held = append(held, p)
	}
	for free, want := range map[int]string{0: "", 1: "1 of 32 partitions is on its way", 2: "2 of 32 partitions are on their way"} {
		var out bytes.Buffer
		nodeTable(&out, api.NodesAnswer{Nodes: []api.NodeLine{{Name: "n-1", Status: "up", Partitions: held[free:]}}})
		if got := out.String(); want == "" && strings.Contains(got, "way") || !strings.Contains(got, want) {
			t.Errorf("%d: %s", free, got)
		}
	}
}
