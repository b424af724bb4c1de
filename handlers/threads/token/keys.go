package token

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"trunkline/codec/jsonx"
	"trunkline/engine/smallfile"
)

// Bounds of key sources.
const (
	// minSecretBytes is the length of the shortest shared secret.
	minSecretBytes = 32
	// maxKeyBytes is the size of the largest key, key set or secret.
	maxKeyBytes = 512 << 10
	// minRSABits is the size of the smallest RSA key.
	minRSABits = 2048
	// maxKeys is how many keys of a set are used.
	maxKeys = 256
)

// key is one key that may have signed a token.
type key struct {
	id, alg string // empty: not given
	barred  bool   // by use or key_ops
	public  any    // *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey; []byte is a secret
}

// fits reports whether k may verify a signature of the method. A key serves one family of methods
// only, so no token chooses how a key is read.
func (k *key) fits(m jwt.SigningMethod) bool {
	if k.alg != "" && k.alg != m.Alg() || k.barred {
		return false
	}
	switch p := k.public.(type) {
	case []byte:
		return m.Alg() == "HS256"
	case *rsa.PublicKey:
		return strings.HasPrefix(m.Alg(), "RS") || strings.HasPrefix(m.Alg(), "PS")
	case *ecdsa.PublicKey:
		return curves[m.Alg()] == p.Curve
	case ed25519.PublicKey:
		return m.Alg() == "EdDSA"
	}
	return false
}

// algEd25519 is another name of EdDSA with this curve (RFC 9864).
const algEd25519 = "Ed25519"

func init() {
	jwt.RegisterSigningMethod(algEd25519, func() jwt.SigningMethod { return jwt.SigningMethodEdDSA })
}

var curves = map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()}

// usable reports whether a public key is strong enough, and of a kind that signs.
func usable(public any) bool {
	switch p := public.(type) {
	case *rsa.PublicKey:
		return p.N.BitLen() >= minRSABits
	case *ecdsa.PublicKey:
		return p.Curve == elliptic.P256() || p.Curve == elliptic.P384() || p.Curve == elliptic.P521()
	case ed25519.PublicKey:
		return len(p) == ed25519.PublicKeySize
	}
	return false
}

// parseSet reads a JSON Web Key Set. Keys that cannot sign, and those that cannot be read, are left
// out; it is an error if none is left.
func parseSet(text []byte) ([]key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(jsonx.TrimBOM(text), &set); err != nil {
		return nil, fmt.Errorf("cannot read the key set: %w", err)
	}
	var list []key
	for _, raw := range set.Keys[:min(len(set.Keys), maxKeys)] {
		var m jwkset.JWKMarshal
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		m.X5U = "" // no other address is asked for a key
		jwk, err := jwkset.NewJWKFromMarshal(m, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{SkipAll: true})
		if err != nil || !usable(jwk.Key()) {
			continue
		}
		k := key{id: m.KID, alg: string(m.ALG), public: jwk.Key()}
		k.barred = m.USE != "" && m.USE != jwkset.UseSig || m.KEYOPS != nil && !slices.Contains(m.KEYOPS, jwkset.KeyOpsVerify)
		if k.alg == algEd25519 {
			k.alg = jwt.SigningMethodEdDSA.Alg()
		}
		list = append(list, k)
	}
	if len(list) == 0 {
		return nil, errors.New("the key set has no usable key")
	}
	return list, nil
}

// parsePublic reads one public key or certificate in PEM.
func parsePublic(text []byte) ([]key, error) {
	block, rest := pem.Decode(text)
	if block == nil || len(bytes.TrimSpace(rest)) != 0 {
		return nil, errors.New("want one PEM block")
	}
	var public any
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		public, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		public, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var cert *x509.Certificate
		if cert, err = x509.ParseCertificate(block.Bytes); err == nil {
			public = cert.PublicKey
		}
	default:
		return nil, fmt.Errorf("a PEM block %q is no public key", block.Type)
	}
	if err != nil {
		return nil, err
	}
	if !usable(public) {
		return nil, fmt.Errorf("cannot use a key of type %T of this size", public)
	}
	return []key{{public: public}}, nil
}

// parseSecret reads a shared secret: the bytes of the file without the line end behind them.
func parseSecret(text []byte) ([]key, error) {
	secret := bytes.TrimRight(text, "\r\n")
	if len(secret) < minSecretBytes {
		return nil, fmt.Errorf("the secret has %d bytes, at least %d are needed", len(secret), minSecretBytes)
	}
	return []key{{public: bytes.Clone(secret)}}, nil
}

// readBounded reads a file of at most maxKeyBytes.
func readBounded(name string) ([]byte, error) {
	text, err := smallfile.Read(name)
	if err != nil {
		return nil, err
	}
	return allOf(bytes.NewReader(text))
}

// allOf reads at most maxKeyBytes to their end.
func allOf(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxKeyBytes+1))
	if err == nil && len(b) > maxKeyBytes {
		err = fmt.Errorf("it is larger than %d bytes", maxKeyBytes)
	}
	return b, err
}

// NewKey makes an Ed25519 key pair for development, both halves in PEM.
func NewKey() (private, public []byte, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		return nil, nil, err
	}
	pubDER, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pubDER}), nil
}

// Sign returns a token with the claims of c, whose times are whole seconds, by a private key of
// NewKey.
func Sign(private []byte, c *Claims, issuer, audience string) (string, error) {
	block, _ := pem.Decode(private)
	if block == nil {
		return "", errors.New("want a private key in PEM")
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return "", err
	}
	ed, ok := k.(ed25519.PrivateKey)
	if !ok {
		return "", fmt.Errorf("cannot sign with a key of type %T: want Ed25519", k)
	}
	for i, value := range []string{c.Agent, c.Workspace, c.Session, c.ID} {
		if !identifies(value) {
			return "", fmt.Errorf("cannot use %q as %s: want 1 to %d bytes that are not blank and have no control character", value, claimNames.Name(claimAgent+i), maxClaimBytes)
		}
	}
	return jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
		"iss": issuer, "aud": audience, "agent_id": c.Agent, "workspace_id": c.Workspace, "session_id": c.Session, "jti": c.ID,
		"role": c.Role.String(), "iat": int64(c.Issued), "exp": int64(c.Expires),
	}).SignedString(ed)
}

// lastSecond is the last one that a time shows with four digits of its year.
const lastSecond = 253402300799

// Until returns when c expires, at most the end of the year 9999.
func (c *Claims) Until() time.Time {
	seconds, part := math.Modf(min(c.Expires, lastSecond))
	return time.Unix(int64(seconds), int64(part*1e9)).UTC()
}
