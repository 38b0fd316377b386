package config

import (
	"fmt"
	"log/slog"
)

const hidden = "(hidden)"

// Secret is a value that never shows itself: not in logs, not in JSON or YAML,
// not with any verb of fmt. Only Reveal gives it.
type Secret struct{ value string }

// NewSecret hides a value.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal gives the value to whoever must send it.
func (s Secret) Reveal() string { return s.value }

// Set reports whether there is a value.
func (s Secret) Set() bool { return s.value != "" }

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return hidden
}

// Format implements fmt.Formatter, for the verbs that do not ask String.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements encoding.TextMarshaler.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
