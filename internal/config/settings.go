package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
)

// Settings of the program.
type Settings struct {
	// Data is the data directory, an absolute path; empty when none is set and
	// there is no home directory to put one into.
	Data string
	// Model is the default model; "scripted:FILE", with an absolute path, is
	// the scripted one. Empty: none is chosen.
	Model string
	// BaseURL of the model's API; empty: the client's default.
	BaseURL string
	// Key of the model's API.
	Key Secret
	// NATS is the server to use; empty: the embedded one.
	NATS NATS
	// SyncAlways: what is acknowledged survives a power cut.
	SyncAlways bool
	// MaxRuns and WarmMembers of a node; 0 is the node's default.
	MaxRuns, WarmMembers int
	// Prices by model name.
	Prices map[string]domain.Price
	// Limits of the guards; a zero field is the default, a negative one none.
	Limits domain.Limits
	// File is the rollcall.yaml that was read; empty when there is none.
	File string
	// Warnings are for the operator to see, one a line.
	Warnings []string

	origins map[string]string
}

// NATS says how a server is reached.
type NATS struct {
	URL string
	// Creds is the path of a credentials file.
	Creds string
	// Context is the name of a context of the nats command line, which filled
	// what was not given otherwise.
	Context string
	// What only a context brings.
	User                string
	Password, Token     Secret
	NKey, CA, Cert, Key string
}

// Set reports whether a server other than the embedded one is meant.
func (n NATS) Set() bool { return n.URL != "" }

// Sources are where settings come from.
type Sources struct {
	// Flags that were given, by flag name.
	Flags map[string]string
	// Env is os.LookupEnv when nil. An empty variable counts as unset.
	Env func(string) (string, bool)
	// Dir is the working directory and Home the user's; found when empty.
	Dir, Home string
}

// A Setting is one line of what can be set.
type Setting struct {
	// Name in rollcall.yaml.
	Name string
	// Env and Flag that set it too; empty where there is none.
	Env, Flag string
	About     string

	set func(s *Settings, v value) error
	get func(s *Settings) string
}

// A value is a setting's text and the directory that relative paths in it
// start from.
type value struct{ text, dir, home string }

// path makes a path absolute; "~/" is the home directory.
func (v value) path() string {
	if rest, ok := strings.CutPrefix(v.text, "~/"); ok && v.home != "" {
		return filepath.Join(v.home, rest)
	}
	if v.text == "" || filepath.IsAbs(v.text) {
		return v.text
	}
	return filepath.Join(v.dir, v.text)
}

// All settings, in the order they are shown. Prices and limits are in the file only.
var All = []Setting{
	{
		Name: "data", Env: "ROLLCALL_DATA", Flag: "data", About: "data directory",
		set: func(s *Settings, v value) error { s.Data = v.path(); return nil },
		get: func(s *Settings) string { return s.Data },
	},
	{
		Name: "model", Env: "ROLLCALL_MODEL", Flag: "model", About: "default model; scripted:FILE is a script",
		set: func(s *Settings, v value) error {
			s.Model = v.text
			if file, ok := Script(v.text); ok {
				if file == "" {
					return errors.New("names no script; write scripted:FILE")
				}
				v.text = file
				s.Model = scriptPrefix + v.path()
			}
			return nil
		},
		get: func(s *Settings) string { return s.Model },
	},
	{
		Name: "base_url", Env: "OPENAI_BASE_URL", Flag: "base-url", About: "address of an OpenAI-compatible API",
		set: func(s *Settings, v value) error { s.BaseURL = v.text; return checkURL(v.text) },
		get: func(s *Settings) string { return s.BaseURL },
	},
	{
		Name: "api_key", Env: "OPENAI_API_KEY", About: "key of the API; there is no flag, because others can read a command line",
		set: func(s *Settings, v value) error { s.Key = NewSecret(strings.TrimSpace(v.text)); return nil },
		get: func(s *Settings) string { return s.Key.String() },
	},
	{
		Name: "nats_url", Env: "NATS_URL", Flag: "nats-url", About: "NATS servers to use instead of the embedded one",
		set: func(s *Settings, v value) error { s.NATS.URL = v.text; return checkServers(v.text) },
		get: func(s *Settings) string { return redactServers(s.NATS.URL) },
	},
	{
		Name: "nats_creds", Env: "NATS_CREDS", Flag: "nats-creds", About: "NATS credentials file",
		set: func(s *Settings, v value) error { s.NATS.Creds = v.path(); return nil },
		get: func(s *Settings) string { return s.NATS.Creds },
	},
	{
		Name: "nats_ca", Env: "NATS_CA", Flag: "nats-ca", About: "file of the authority that vouches for the NATS servers",
		set: func(s *Settings, v value) error { s.NATS.CA = v.path(); return nil },
		get: func(s *Settings) string { return s.NATS.CA },
	},
	{
		Name: "nats_context", Env: "NATS_CONTEXT", Flag: "nats-context", About: "context of the nats command line",
		set: func(s *Settings, v value) error { s.NATS.Context = v.text; return nil },
		get: func(s *Settings) string { return s.NATS.Context },
	},
	{
		Name: "sync", Flag: "sync", About: "always: what is acknowledged survives a power cut; interval: faster, the last seconds may be lost",
		set: func(s *Settings, v value) error {
			if v.text != "always" && v.text != "interval" {
				return fmt.Errorf("is %q; choose always or interval", v.text)
			}
			s.SyncAlways = v.text == "always"
			return nil
		},
		get: func(s *Settings) string {
			if s.SyncAlways {
				return "always"
			}
			return "interval"
		},
	},
	{
		Name: "max_concurrent_runs", Flag: "max-concurrent-runs", About: "model calls in flight on a node; 0 is the default",
		set: func(s *Settings, v value) (err error) { s.MaxRuns, err = number(v.text, 100_000); return err },
		get: func(s *Settings) string { return strconv.Itoa(s.MaxRuns) },
	},
	{
		Name: "warm_members", Flag: "warm-members", About: "members that a node rebuilds when it starts; 0 is the default",
		set: func(s *Settings, v value) (err error) { s.WarmMembers, err = number(v.text, 100_000_000); return err },
		get: func(s *Settings) string { return strconv.Itoa(s.WarmMembers) },
	},
}

func number(text string, limit int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > limit {
		return 0, fmt.Errorf("is %q; choose a whole number from 0 to %d", text, limit)
	}
	return n, nil
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("is no address; write one such as http://localhost:11434/v1")
	case u.User != nil:
		return errors.New("has a name or password in it; put the key into OPENAI_API_KEY")
	}
	return nil
}

func checkServers(text string) error {
	for server := range strings.SplitSeq(text, ",") {
		server = strings.TrimSpace(server)
		if !strings.Contains(server, "://") {
			server = "nats://" + server
		}
		u, err := url.Parse(server)
		if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return errors.New("has an address that is none; write one such as nats://localhost:4222")
		}
	}
	return nil
}

// redactServers hides names, passwords and tokens.
func redactServers(text string) string {
	if text == "" {
		return ""
	}
	servers := strings.Split(text, ",")
	for i, server := range servers {
		if before, after, ok := strings.Cut(server, "://"); ok {
			if at := strings.LastIndex(after, "@"); at >= 0 {
				servers[i] = before + "://" + hidden + after[at:]
			}
		} else if at := strings.LastIndex(server, "@"); at >= 0 {
			servers[i] = hidden + server[at:]
		}
	}
	return strings.Join(servers, ",")
}

// A Shown is one setting as rollcall config shows it: secrets are hidden.
type Shown struct{ Name, Value, Origin string }

// Show lists all settings with where each comes from.
func (s *Settings) Show() []Shown {
	rows := make([]Shown, 0, len(All)+1)
	for _, x := range All {
		rows = append(rows, Shown{x.Name, x.get(s), s.Origin(x.Name)})
	}
	prices := fmt.Sprintf("%d models", len(s.Prices))
	if len(s.Prices) == 1 {
		prices = "1 model"
	}
	return append(rows, Shown{"prices", prices, s.Origin("prices")}, Shown{"limits", limitsText(s.Limits), s.Origin("limits")})
}

// Origin of a setting: a flag, a variable, a place in a file, or "default".
func (s *Settings) Origin(name string) string {
	if o := s.origins[name]; o != "" {
		return o
	}
	return "default"
}

func lookup(env func(string) (string, bool), name string) (string, bool) {
	if env == nil {
		env = os.LookupEnv
	}
	v, ok := env(name)
	return v, ok && v != ""
}

// scriptPrefix before a file's name makes a script of it.
const scriptPrefix = "scripted:"

// Script is the file of a model that is a script, which the node serves itself.
func Script(model string) (file string, ok bool) { return strings.CutPrefix(model, scriptPrefix) }
