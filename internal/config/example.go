package config

import (
	_ "embed"
	"fmt"
	"strings"
)

// ExampleTeam is a file of agents with a prepared team, which says of each field
// what it is for.
//
//go:embed example_team.yaml
var ExampleTeam string

// exampleHead and exampleTail stand around the settings.
const (
	exampleHead = `# Settings of Rollcall. Flags win over the environment, that over this file.
# What is commented out has its default. A node keeps the settings that it was
# started with: rollcall down, and the next command starts one with new ones.
# rollcall config shows every setting and where it comes from.
`
	exampleTail = `
# What models cost, in your currency for a million tokens. With a price known,
# rollcall run --budget 2.50 limits money, else tokens (--budget 300000t).
#prices:
#  qwen3:14b: {input: 0.15, cached: 0.075, output: 0.60}
`
)

// examples are values to start from; a setting that is not here shows its default.
var examples = map[string]string{
	"data":         "~/rollcall-data",
	"model":        "qwen3:14b",
	"base_url":     "http://localhost:11434/v1",
	"api_key":      "'…'",
	"nats_url":     "nats://localhost:4222",
	"nats_creds":   "~/rollcall/client.creds",
	"nats_ca":      "~/rollcall/ca.pem",
	"nats_context": "mine",
}

// ExampleSettings is a rollcall.yaml that has every setting, each commented out.
func ExampleSettings() string {
	var b strings.Builder
	b.WriteString(exampleHead)
	defaults := &Settings{SyncAlways: true}
	for _, x := range All {
		value, ok := examples[x.Name]
		if !ok {
			value = x.get(defaults)
		}
		if value == "" {
			value = "''"
		}
		also := ""
		if x.Env != "" {
			also = " (" + x.Env + ")"
		}
		fmt.Fprintf(&b, "\n# %s%s%s\n#%s: %s\n", strings.ToUpper(x.About[:1]), x.About[1:], also, x.Name, value)
	}
	b.WriteString(exampleTail)
	return b.String()
}
