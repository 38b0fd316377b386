package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/internal/nearest"
)

// A natsContext is what the nats command line stores under a name.
type natsContext struct {
	URL      string `json:"url"`
	Creds    string `json:"creds"`
	User     string `json:"user"`
	Password string `json:"password"`
	Token    string `json:"token"`
	NKey     string `json:"nkey"`
	CA       string `json:"ca"`
	Cert     string `json:"cert"`
	Key      string `json:"key"`
}

// resolveContext fills what a context of the nats command line says and was
// not said otherwise.
func (s *Settings) resolveContext(src Sources) error {
	name := s.NATS.Context
	if name == "" {
		return nil
	}
	what := fmt.Sprintf("the NATS context %q (%s)", name, s.Origin("nats_context"))
	dir := filepath.Join(src.xdg("XDG_CONFIG_HOME", ".config"), "nats", "context")
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return refuse(codeSettings, what, "it is no name of a context", "nats context ls lists them")
	}
	file := filepath.Join(dir, name+".json")
	data, err := readFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return refuse(codeSettings, what, "there is no "+file, available(dir, name))
	}
	var c natsContext
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		return refuse(codeSettings, what, fmt.Sprintf("%s: %v", file, err), "nats context edit "+name)
	}
	n := &s.NATS
	for _, x := range []struct {
		into *string
		text string
		path bool
	}{{&n.URL, c.URL, false}, {&n.Creds, c.Creds, true}, {&n.User, c.User, false}, {&n.NKey, c.NKey, true}, {&n.CA, c.CA, true}, {&n.Cert, c.Cert, true}, {&n.Key, c.Key, true}} {
		if *x.into != "" {
			continue
		}
		if *x.into = x.text; x.path {
			*x.into = value{x.text, dir, src.Home}.path()
		}
	}
	n.Password, n.Token = NewSecret(c.Password), NewSecret(c.Token)
	if err := checkServers(n.URL); err != nil {
		return refuse(codeSettings, what, "its url "+err.Error(), "nats context edit "+name)
	}
	return nil
}

func available(dir, name string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".json"))
	}
	slices.Sort(names)
	if near := nearest.To(name, names, 1); len(near) > 0 {
		return fmt.Sprintf("did you mean %q? There are: %s", near[0], strings.Join(names, ", "))
	}
	if len(names) == 0 {
		return "nats context add makes one"
	}
	return "there are: " + strings.Join(names, ", ")
}
