package cli

import (
	"context"
	"fmt"
	"strings"
	"unicode"

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
