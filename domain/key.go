package domain

import "strings"

// Partitions is the number of partitions of an installation. It is fixed when
// the installation is made: the subjects of the log carry it.
const Partitions = 32

// Key names a conversation: the scope of names, of consistency and of audit.
type Key struct {
	// Tenant is a subject token; "main" by default.
	Tenant string
	// Conversation is a lower-case ULID.
	Conversation string
}

func (k Key) String() string { return k.Tenant + "." + k.Conversation }

// Partition is the partition that NATS itself computes for the key: FNV-1a 32
// over tenant and conversation without a separator.
func (k Key) Partition() int {
	const offset, prime = 2166136261, 16777619
	h := uint32(offset)
	for _, s := range [...]string{k.Tenant, k.Conversation} {
		for i := range len(s) {
			h = (h ^ uint32(s[i])) * prime
		}
	}
	return int(h % Partitions)
}

// Valid reports whether both parts are safe subject tokens: lower-case
// letters, digits, '-' and '_', 1 to 64 of them.
func (k Key) Valid() bool { return ValidToken(k.Tenant) && ValidToken(k.Conversation) }

// ValidToken reports whether s may stand in a subject.
func ValidToken(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}) < 0
}
