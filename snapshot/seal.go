package snapshot

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Kind says what a sealed text is. One kind never opens as another.
type Kind uint8

const (
	KindImage  Kind = 1 // a VM's memory, as the worker wrote it
	KindRecord Kind = 2 // what the supervisor knows about a run that goes on
	KindLog    Kind = 3 // one entry of a run's log
	KindResult Kind = 4 // what is kept of a run that is over
)

// String is the kind's name in FORMAT.md.
func (k Kind) String() string {
	switch k {
	case KindImage:
		return "image"
	case KindRecord:
		return "record"
	case KindLog:
		return "log entry"
	case KindResult:
		return "result"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// The most that a text may have, in bytes before it is sealed. Save and Append refuse
// more, Open does not even begin with it.
const (
	MaxRecord = 64 << 20  // a record, and a result
	MaxEntry  = 32 << 20  // a log entry
	MaxImage  = 300 << 20 // an image: above the highest maxSnapshotBytes (SPEC 13)
)

// limit is the most that a text of this kind has; 0 for kinds that do not exist.
func (k Kind) limit() int {
	switch k {
	case KindImage:
		return MaxImage
	case KindRecord, KindResult:
		return MaxRecord
	case KindLog:
		return MaxEntry
	}
	return 0
}

// A Binding says what a sealed text belongs to. All of it is authenticated: the text opens
// for an equal binding and for no other (SPEC 14.3).
type Binding struct {
	Kind   Kind
	RunID  string
	Owner  Owner
	Engine string // of an image: the engine's SHA-256 in hex; "" for all else
}

// ErrBroken is the error of a sealed text that was changed, cut, sealed with another key,
// or for another binding. Which of these it is cannot be told apart.
var ErrBroken = errors.New("what was kept is damaged, or is not what it is said to be")

// ErrEngine is the error of an image that says it is of another engine. It is an
// [ErrBroken], too.
var ErrEngine = fmt.Errorf("it is of another engine: %w", ErrBroken)

// The container, to the byte: FORMAT.md.
const (
	magic         = "cmsealed"
	formatVersion = 1

	versionAt  = 8 // behind magic; not len(magic), which would make all of these int
	kindAt     = versionAt + 1
	engineAt   = kindAt + 1
	saltAt     = engineAt + sha256.Size
	saltSize   = 32
	headerSize = saltAt + saltSize
	tagSize    = 16
	nonceSize  = 12
)

// Overhead is the number of bytes that a sealed text has more than the plain one.
const Overhead = headerSize + tagSize

const containerInfo = "codemode snapshot container 1"

// Seal encrypts plain for its binding, with AES-256-GCM under a key of its own. It panics
// if the binding could never be opened: a kind that does not exist, or an engine that is
// no SHA-256 in hex. It may be called by any number of goroutines.
func (k *Key) Seal(b Binding, plain []byte) []byte {
	var salt [saltSize]byte
	rand.Read(salt[:])
	return k.seal(b, plain, salt)
}

// seal is Seal with a salt that the caller chose: only a test may do that.
func (k *Key) seal(b Binding, plain []byte, salt [saltSize]byte) []byte {
	engine, ok := engineHash(b.Engine)
	if !ok || b.Kind.limit() == 0 {
		panic(fmt.Sprintf("snapshot: sealing a text of %v for the engine %q", b.Kind, b.Engine))
	}
	sealed := make([]byte, 0, len(plain)+Overhead)
	sealed = append(sealed, magic...)
	sealed = append(sealed, formatVersion, byte(b.Kind))
	sealed = append(sealed, engine[:]...)
	sealed = append(sealed, salt[:]...)
	aead, nonce := k.cipher(salt[:])
	return aead.Seal(sealed, nonce, plain, b.extra(sealed))
}

// Open gives the text that [Key.Seal] sealed for an equal binding, and [ErrBroken] or
// [ErrEngine] for all else. It may be called by any number of goroutines.
func (k *Key) Open(b Binding, sealed []byte) ([]byte, error) {
	limit := b.Kind.limit()
	if limit == 0 || len(sealed) < Overhead || len(sealed) > limit+Overhead {
		return nil, ErrBroken
	}
	header := sealed[:headerSize:headerSize]
	if string(header[:versionAt]) != magic || header[versionAt] != formatVersion || header[kindAt] != byte(b.Kind) {
		return nil, ErrBroken
	}
	engine, ok := engineHash(b.Engine)
	if !ok || subtle.ConstantTimeCompare(engine[:], header[engineAt:saltAt]) != 1 {
		return nil, ErrEngine
	}
	aead, nonce := k.cipher(salt(sealed))
	plain, err := aead.Open(nil, nonce, sealed[headerSize:], b.extra(header))
	if err != nil {
		return nil, ErrBroken
	}
	return plain, nil
}

// cipher makes the key and the nonce of one container. Both come from its random salt, so
// that no pair of them is ever used for two texts; a nonce alone, of 12 bytes under one
// key for everything, would have to be counted across processes.
func (k *Key) cipher(salt []byte) (aead cipher.AEAD, nonce []byte) {
	secret := k.derive(salt, containerInfo, 32+nonceSize)
	block, err := aes.NewCipher(secret[:32])
	if err == nil {
		aead, err = cipher.NewGCM(block)
	}
	if err != nil {
		panic(err) // the sizes are constants
	}
	return aead, secret[32:]
}

// derive gives bytes for one purpose (HKDF-SHA-256, RFC 5869).
func (k *Key) derive(salt []byte, info string, size int) []byte {
	secret, err := hkdf.Key(sha256.New, k.secret[:], salt, info, size)
	if err != nil {
		panic(err) // only for sizes of more than 255 hashes
	}
	return secret
}

// extra is what is authenticated beside the text: the header, and the binding with the
// length of each part before it, so that nothing can move from one part to the next.
func (b Binding) extra(header []byte) []byte {
	extra := append([]byte(nil), header...)
	fields := b.Owner.fields()
	for _, part := range append([]string{b.RunID}, fields[:]...) {
		extra = binary.BigEndian.AppendUint32(extra, uint32(len(part)))
		extra = append(extra, part...)
	}
	return extra
}

// salt is the salt in a container's header, which tells it from all others; nil if it has
// no whole header.
func salt(sealed []byte) []byte {
	if len(sealed) < headerSize {
		return nil
	}
	return sealed[saltAt:headerSize]
}

// engineHash reads an engine's hash; "" is that of no engine, zeros.
func engineHash(engine string) (hash [sha256.Size]byte, ok bool) {
	if engine == "" {
		return hash, true
	}
	if len(engine) != 2*len(hash) || engine != strings.ToLower(engine) {
		return hash, false
	}
	_, err := hex.Decode(hash[:], []byte(engine))
	return hash, err == nil
}
