package chaos_test

import "context"

type node struct{ name string }

func (b *breaker) strikeNode(ctx context.Context, n *node, s step) {}

func program(args []string) int { return 0 }
