package cli

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
)

// A name made of an objective has at most this many words and runes.
const (
	nameWords = 4
	nameRunes = 32
)

// nameOf makes a short name of an objective's first words: what is typed after
// `rollcall show` when --name gave none.
func nameOf(objective string) string {
	words := strings.FieldsFunc(strings.ToLower(objective), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	})
	name := ""
	for _, word := range words[:min(len(words), nameWords)] {
		joined := strings.TrimPrefix(name+"-"+word, "-")
		if len([]rune(joined)) > nameRunes && name != "" {
			break
		}
		name = joined
	}
	if runes := []rune(name); len(runes) > nameRunes {
		name = string(runes[:nameRunes])
	}
	return name
}

// checkName refuses a name that no command could be given: CONV/MEMBER and
// CONV@VERSION would be read as something else.
func checkName(name string) error {
	why := ""
	if i := strings.LastIndexByte(name, '@'); i >= 0 && digits(name[i+1:]) {
		why = "NAME@" + name[i+1:] + " means a version"
	}
	if strings.Contains(name, "/") {
		why = "what stands after a slash is a member"
	}
	if why == "" {
		return nil
	}
	return domain.Refuse("name-invalid", fmt.Sprintf("the conversation cannot be called %q", printable(name)), why, "leave slashes out, and digits after an @")
}

// freeName adds a number to a name that a conversation has already.
func freeName(ctx context.Context, c *api.Client, name string) (string, error) {
	list, err := c.List(ctx)
	if err != nil || name == "" {
		return name, err
	}
	taken := map[string]bool{}
	for _, conversation := range list.Conversations {
		taken[conversation.Name] = true
	}
	free := name
	for n := 2; taken[free]; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free, nil
}

// called is what to type for the followed conversation: its name, where no
// other has it, else its id.
func (f *following) called(ctx context.Context, id string) string {
	if f.state == nil || f.state.Name == "" {
		return id
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	list, err := f.client.List(ctx)
	if err != nil {
		return shellWord(f.state.Name) // the node is gone; nobody knows
	}
	for _, x := range list.Conversations {
		if x.ID != id && strings.EqualFold(x.Name, f.state.Name) {
			return id
		}
	}
	return shellWord(f.state.Name)
}
