package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/rollcall-dev/rollcall/domain"
)

// fileName is the settings file in the working directory and below the user's
// directory of settings.
const fileName = "rollcall.yaml"

// Load reads the settings: flags over environment over rollcall.yaml over what
// is the default. The file is the one that --config or ROLLCALL_CONFIG names,
// else ./rollcall.yaml, else rollcall/rollcall.yaml in the user's directory of
// settings; only a named one must exist. Errors: *domain.Refusal.
func Load(src Sources) (*Settings, error) {
	if err := src.fill(); err != nil {
		return nil, err
	}
	s := &Settings{SyncAlways: true, origins: map[string]string{}}
	if dir := src.xdg("XDG_DATA_HOME", ".local/share"); dir != "" {
		s.Data = filepath.Join(dir, "rollcall")
	}
	data, err := src.findFile(s)
	if err != nil {
		return nil, err
	}
	if s.File != "" {
		if err := s.readFile(data, src); err != nil {
			return nil, err
		}
	}
	for _, x := range All {
		for _, given := range []struct{ text, origin string }{src.fromEnv(x), src.fromFlag(x)} {
			if given.origin == "" {
				continue
			}
			if err := x.set(s, value{given.text, src.Dir, src.Home}); err != nil {
				return nil, refuse(codeSettings, given.origin, "it "+err.Error(), "rollcall config shows all settings and where they come from")
			}
			s.origins[x.Name] = given.origin
		}
	}
	if err := s.resolveContext(src); err != nil {
		return nil, err
	}
	s.warn(src)
	return s, nil
}

func (src *Sources) fill() error {
	var err error
	if src.Dir == "" {
		if src.Dir, err = os.Getwd(); err != nil {
			return refuse(codeSettings, "the working directory", err.Error(), "change to a directory that exists")
		}
	}
	if src.Home == "" {
		// Without a home the paths in it are not used, or fail with their name.
		src.Home, _ = os.UserHomeDir()
	}
	return nil
}

func (src *Sources) fromEnv(x Setting) (given struct{ text, origin string }) {
	if x.Env == "" {
		return given
	}
	if v, ok := lookup(src.Env, x.Env); ok {
		given.text, given.origin = v, x.Env
	}
	return given
}

func (src *Sources) fromFlag(x Setting) (given struct{ text, origin string }) {
	if v, ok := src.Flags[x.Flag]; ok && x.Flag != "" {
		given.text, given.origin = v, "--"+x.Flag
	}
	return given
}

// xdg is a base directory: the variable if it is absolute, else the default
// below the home directory; empty when that is not known.
func (src *Sources) xdg(variable, below string) string {
	if dir, ok := lookup(src.Env, variable); ok && filepath.IsAbs(dir) {
		return dir
	}
	if src.Home == "" {
		return ""
	}
	return filepath.Join(src.Home, filepath.FromSlash(below))
}

// findFile reads the settings file and notes its name.
func (src *Sources) findFile(s *Settings) ([]byte, error) {
	named, origin := src.Flags["config"], "--config"
	if named == "" {
		named, _ = lookup(src.Env, "ROLLCALL_CONFIG")
		origin = "ROLLCALL_CONFIG"
	}
	if named != "" {
		s.File = value{named, src.Dir, src.Home}.path()
		data, err := readFile(s.File)
		if err != nil {
			return nil, refuse(codeSettings, origin, err.Error(), "name a file that can be read, or leave it out")
		}
		return data, nil
	}
	files := []string{filepath.Join(src.Dir, fileName)}
	if dir := src.xdg("XDG_CONFIG_HOME", ".config"); dir != "" {
		files = append(files, filepath.Join(dir, "rollcall", fileName))
	}
	for _, file := range files {
		data, err := readFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, refuse(codeSettings, file, err.Error(), "make it readable, or move it away")
		}
		s.File = file
		return data, nil
	}
	return nil, nil
}

// readFile sets what the settings file says. Relative paths in it start from
// its own directory.
func (s *Settings) readFile(data []byte, src Sources) error {
	d := open(s.File, data)
	fields := map[string]field{"prices": func(key *token.Token, n ast.Node) {
		s.Prices = d.prices(n)
		s.origins["prices"] = place(s.File, key)
	}, "limits": func(key *token.Token, n ast.Node) {
		s.Limits = d.limits(n)
		s.origins["limits"] = place(s.File, key)
	}}
	var names []string
	for _, x := range All {
		names = append(names, x.Name)
		fields[x.Name] = func(key *token.Token, n ast.Node) {
			n = d.plain(n)
			if n == nil {
				return
			}
			var text string
			if number, ok := n.(*ast.IntegerNode); ok {
				text = number.GetToken().Value
			} else if text = d.text(n, x.Name); text == "" {
				return
			}
			if err := x.set(s, value{text, filepath.Dir(s.File), src.Home}); err != nil {
				d.at(n.GetToken(), x.Name+" "+err.Error(), "")
			}
			s.origins[x.Name] = place(s.File, key)
		}
	}
	d.mapping(d.root, "the settings file", append(names, "prices", "limits"), fields)
	return d.refusal(codeSettings)
}

func place(file string, t *token.Token) string {
	return fmt.Sprintf("%s:%d", file, t.Position.Line)
}

// prices reads amounts of the currency for a million tokens, by model.
func (d *document) prices(n ast.Node) map[string]domain.Price {
	prices := map[string]domain.Price{}
	d.entries(n, "prices", func(key *token.Token, n ast.Node) {
		var p domain.Price
		what := "the price of " + key.Value
		amount := func(into *uint64) field {
			return func(_ *token.Token, n ast.Node) { *into = d.money(n, what) }
		}
		d.mapping(n, what, []string{"input", "cached", "output"}, map[string]field{
			"input": amount(&p.Input), "cached": amount(&p.Cached), "output": amount(&p.Output),
		})
		prices[key.Value] = p
	})
	return prices
}

// warn tells of what works but should be known.
func (s *Settings) warn(src Sources) {
	if s.File == "" {
		return
	}
	fromFile := func(name string) bool { return strings.HasPrefix(s.Origin(name), s.File+":") }
	if fromFile("api_key") {
		if info, err := os.Stat(s.File); err == nil && info.Mode().Perm()&0o077 != 0 {
			s.Warnings = append(s.Warnings, fmt.Sprintf("others can read the api_key in %s: run chmod 600, or use OPENAI_API_KEY", s.File))
		}
	}
	if s.Key.Set() && !fromFile("api_key") && fromFile("base_url") && filepath.Dir(s.File) == filepath.Clean(src.Dir) {
		s.Warnings = append(s.Warnings, fmt.Sprintf("the key of %s is sent to %s, which %s names", s.Origin("api_key"), s.BaseURL, s.Origin("base_url")))
	}
	slices.Sort(s.Warnings)
}
