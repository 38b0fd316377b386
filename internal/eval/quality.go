package eval

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Quality is how good a result is, by the answer and the delivered files alone.
type Quality struct {
	// Success: nothing is missing and nothing is made up.
	Success bool `json:"success"`
	// Missing are the facts that are not there, as "FACT in FILE".
	Missing []string `json:"missing,omitempty"`
	// Fabricated are claims that stand in no input and follow from none.
	Fabricated []string `json:"fabricated,omitempty"`
}

// Result is what a conversation came to.
type Result struct {
	Answer string
	// Files that were delivered, by path.
	Files map[string]string
}

// judge compares a result with what was given: objective, inputs and the
// operator's words so far.
func (c Case) judge(given string, r Result) Quality {
	q := Quality{Missing: c.missing(r), Fabricated: c.fabricated(given, r)}
	q.Success = len(q.Missing)+len(q.Fabricated) == 0
	return q
}

func (c Case) missing(r Result) (lacks []string) {
	for _, f := range c.Facts {
		text, what := r.Answer, f.Name+" in the answer"
		if f.File != "" {
			text, what = r.file(f.File), f.Name+" in "+f.File
		}
		if !f.Is.MatchString(plainNumbers(text)) {
			lacks = append(lacks, what)
		}
	}
	return lacks
}

// file is the text of all delivered files with a name, wherever they lie.
func (r Result) file(name string) string {
	var texts []string
	for p, text := range r.Files {
		if path.Base(p) == name {
			texts = append(texts, text)
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n")
}

func (c Case) fabricated(given string, r Result) (made []string) {
	texts := []string{r.Answer}
	for _, text := range r.Files {
		texts = append(texts, text)
	}
	for _, claim := range c.Claims {
		known := append(values(claim, given), c.Derived...)
		for _, text := range texts {
			for _, value := range values(claim, text) {
				if !slices.Contains(known, value) && !slices.Contains(made, value) {
					made = append(made, value)
				}
			}
		}
	}
	slices.Sort(made)
	return made
}

// values are what a pattern finds in a text, each written in one way.
func values(claim *regexp.Regexp, text string) (found []string) {
	for _, m := range claim.FindAllStringSubmatch(plainNumbers(text), -1) {
		found = append(found, strings.ToLower(strings.ReplaceAll(m[1], ",", ".")))
	}
	return found
}

var thousands = regexp.MustCompile(`(\d)[,'\x{a0}\x{202f}](\d{3})\b`)

// plainNumbers takes the marks out of 1,480.
func plainNumbers(text string) string { return thousands.ReplaceAllString(text, "$1$2") }
