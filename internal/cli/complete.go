package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completeConversation completes the names and ids of conversations in a shell.
func (s *session) completeConversation(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || s.settings(c) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	client, err := s.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	client.Patience = 300 * time.Millisecond
	ctx, cancel := context.WithTimeout(c.Context(), time.Second)
	defer cancel()
	all, err := client.List(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, x := range all.Conversations {
		for _, word := range []string{x.Name, x.ID} {
			if word != "" && strings.HasPrefix(word, begun) {
				found = append(found, word)
				break
			}
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
