package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/internal/stored"
)

// Instance is one instance of a service.
type Instance struct {
	// Service is the service's name, and the name of its directory.
	Service string `json:"service"`
	// ID is unique within the service, and the name of the instance's node. Default: a UUID.
	ID string `json:"id"`
	// Address is a host name or an IP address, at which callers reach the instance: not 0.0.0.0 or
	// ::.
	Address string `json:"address"`
	// Port is the port of plain connections, SSLPort the port of TLS. 0 means that the instance
	// does not listen there; one of them must not be 0.
	Port    int `json:"port,omitempty"`
	SSLPort int `json:"ssl_port,omitempty"`
	// Weight is this instance's share of the calls, relative to the other weights, 1 to 1000.
	// Default 1.
	Weight int `json:"weight"`
	// Metadata is for callers to read, such as the version of the program.
	Metadata map[string]string `json:"metadata,omitempty"`
	// Disabled is the reason why the registered instance gets no calls, or "" if it gets calls.
	Disabled string `json:"disabled,omitempty"`
	// Registered is when the instance was registered, by the clock of its machine. Default: the
	// time of Register.
	Registered time.Time `json:"registered,omitzero"`
	// Payload is the JSON of Curator's payload, or nil. If it is an object, Weight, Metadata and
	// Disabled are stored as its fields "weight", "metadata" and "disabled", which are written only
	// when they change. If it is not an object, the instance cannot have a weight or metadata. The
	// same holds for a field of a Java program with one of these names and a value that this
	// package does not write, such as the weight 0.25: it stays. Java programs read the payload as
	// the class that its field "@class" names, or as a map without that field.
	Payload json.RawMessage `json:"payload,omitempty"`
	// URISpec is the pattern by which Java programs build the instance's URI, such as
	// "{scheme}://{address}:{port}/v2". This package does not use it.
	URISpec string `json:"uri_spec,omitempty"`
}

// MarshalJSON returns the fields of the instance. It is not the form in which instances are stored.
func (i Instance) MarshalJSON() ([]byte, error) {
	type fields Instance
	i.Registered = reportjson.Time(i.Registered)
	return json.Marshal(fields(i))
}

// unhealthy begins Instance.Disabled when the instance's own health check has disabled it.
const unhealthy = "unhealthy: "

// maxCheckError is how many bytes of the text of a health check's error are stored.
const maxCheckError = 4 << 10

// HostPort returns "address:port": for TLS with SSLPort, else with Port. If that port is 0, it uses
// the other one.
func (i Instance) HostPort(tls bool) string {
	port := i.Port
	if tls && i.SSLPort != 0 || port == 0 {
		port = i.SSLPort
	}
	return net.JoinHostPort(i.Address, strconv.Itoa(port))
}

// Validate returns why Register refuses an instance, or nil, without a request. The error wraps
// framework.ErrInvalid. An ID and a Weight that are missing are chosen by Register.
func (i Instance) Validate() error { return i.prepare().checkOwn() }

// checkOwn is checkFields for an instance of this process. That of a listener's address may be
// 0.0.0.0 or ::, where a caller would find itself.
func (i Instance) checkOwn() error {
	if ip := net.ParseIP(i.Address); ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("%w: the address %s stands for all of a machine's, give one at which callers reach it",
			errInvalid, i.Address)
	}
	return i.checkFields()
}

// prepare returns a copy of the instance as Register registers it.
func (i Instance) prepare() Instance {
	i = i.cloneInstance()
	i.normalizeText()
	if i.ID == "" {
		i.ID = uuid.NewString()
	}
	if i.Weight == 0 {
		i.Weight = 1
	}
	if i.Registered.IsZero() {
		i.Registered = time.Now()
	}
	return i
}

// checkFields returns why an instance cannot be used, or nil. The error wraps framework.ErrInvalid.
// Any client with write permission may have written the address.
func (i Instance) checkFields() error {
	bad := func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune(`/\@?#%"<>`, r)
	}
	switch {
	case i.Service == "" || framework.ValidatePath("/"+i.Service) != nil || strings.Contains(i.Service, "/"):
		return fmt.Errorf("%w: %q cannot be a service's name", errInvalid, i.Service)
	case i.ID == "" || framework.ValidatePath("/"+i.ID) != nil || strings.Contains(i.ID, "/"):
		return fmt.Errorf("%w: %q cannot be an id", errInvalid, i.ID)
	case i.Address == "" || len(i.Address) > 255 || strings.ContainsFunc(i.Address, bad) ||
		strings.ContainsRune(i.Address, ':') && net.ParseIP(i.Address) == nil:
		return fmt.Errorf("%w: %.300q cannot be an address, give a host name or an IP address", errInvalid, i.Address)
	case i.Port < 0 || i.Port > 65535 || i.SSLPort < 0 || i.SSLPort > 65535 || i.Port == 0 && i.SSLPort == 0:
		return fmt.Errorf("%w: ports %d and %d, one must be 1 to 65535", errInvalid, i.Port, i.SSLPort)
	case i.Weight < 1 || i.Weight > maxWeight:
		return fmt.Errorf("%w: weight %d, it must be 1 to %d", errInvalid, i.Weight, maxWeight)
	case len(i.Payload) > 0 && !json.Valid(i.Payload):
		return fmt.Errorf("%w: payload %.100q is not JSON", errInvalid, i.Payload)
	}
	for k, v := range i.Metadata {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return fmt.Errorf("%w: metadata: %q: %q is not UTF-8", errInvalid, k, v)
		}
	}
	return parsePayload(i.Payload).checkHolds(i)
}

// normalizeText makes the texts that only describe the instance what they are when they are read
// again.
func (i *Instance) normalizeText() {
	i.Disabled, i.URISpec = stored.Text(i.Disabled), stored.Text(i.URISpec)
}

// reasonAfterCheck returns the reason for which the instance is disabled after a health check that
// has returned err. disabledByCheck is the reason for which the check has disabled the instance, or
// "" if it has not. If the payload does not hold the reason, reasonAfterCheck takes any reason for
// that of the check.
func (i Instance) reasonAfterCheck(err error, disabledByCheck string) string {
	switch {
	case err == nil && disabledByCheck != "" &&
		(i.Disabled == disabledByCheck || !parsePayload(i.Payload).holds("disabled")):
		return ""
	case err != nil && i.Disabled == "":
		return unhealthy + stored.Excerpt(err.Error(), maxCheckError)
	}
	return i.Disabled
}

func (i Instance) cloneInstance() Instance {
	i.Metadata, i.Payload = maps.Clone(i.Metadata), slices.Clone(i.Payload)
	return i
}

// instanceRecord is the JSON of Curator's ServiceInstance.
type instanceRecord struct {
	Name    string          `json:"name"`
	ID      string          `json:"id"`
	Address *string         `json:"address"`
	Port    *int            `json:"port"`
	SSLPort *int            `json:"sslPort"`
	Payload json.RawMessage `json:"payload"`
	Time    int64           `json:"registrationTimeUTC"`
	Type    string          `json:"serviceType"`
	URISpec *uriSpec        `json:"uriSpec"`
	Enabled *bool           `json:"enabled"`
}

// uriSpec is the JSON of Curator's UriSpec.
type uriSpec struct {
	Parts []uriPart `json:"parts"`
}

type uriPart struct {
	Value    string `json:"value"`
	Variable bool   `json:"variable"`
}

// String returns the text from which Curator makes the UriSpec: variables are in braces.
func (u *uriSpec) String() string {
	if u == nil {
		return ""
	}
	var b strings.Builder
	for _, part := range u.Parts {
		if part.Variable {
			part.Value = "{" + part.Value + "}"
		}
		b.WriteString(part.Value)
	}
	return b.String()
}

// parseURISpec is the inverse of String. A brace without its counterpart is text.
func parseURISpec(text string) *uriSpec {
	if text == "" {
		return nil
	}
	u := new(uriSpec)
	for text != "" {
		open := strings.IndexByte(text, '{')
		length := strings.IndexByte(text[max(open, 0):], '}')
		switch {
		case open < 0 || length < 0:
			open = len(text)
			fallthrough
		case open > 0:
			u.Parts = append(u.Parts, uriPart{Value: text[:open]})
			text = text[open:]
		default:
			u.Parts = append(u.Parts, uriPart{text[1:length], true})
			text = text[length+1:]
		}
	}
	return u
}

// payloadFields is a payload with the fields of an instance that Curator does not have. Its other
// fields belong to Java programs and stay.
type payloadFields struct {
	fields map[string]json.RawMessage // nil if the payload is not an object
	// the names of fields that this package would have, with values that it does not write
	foreign  map[string]bool
	weight   int // 1 if it has none
	metadata map[string]string
	disabled string
}

// maxWeight is the largest weight.
const maxWeight = 1000

// parsePayload reads a payload. A weight above maxWeight is read as that.
func parsePayload(payload json.RawMessage) payloadFields {
	p := payloadFields{fields: map[string]json.RawMessage{}, foreign: map[string]bool{}, weight: 1}
	if len(payload) == 0 || string(payload) == "null" {
		return p
	}
	p.fields = nil
	if json.Unmarshal(payload, &p.fields) != nil { // it is a text or a list of a Java program
		p.fields = nil
		return p
	}
	read := func(name string, into any) (isOwn bool) {
		raw, there := p.fields[name]
		isOwn = there && string(raw) != "null" && json.Unmarshal(raw, into) == nil
		p.foreign[name] = there && !isOwn
		return isOwn
	}
	weight := 0
	if read("weight", &weight) {
		p.foreign["weight"] = weight < 1 || weight > maxWeight
	}
	if weight > 0 {
		p.weight = min(weight, maxWeight)
	}
	if !read("metadata", &p.metadata) {
		p.metadata = nil // it may have been read in part
	}
	read("disabled", &p.disabled)
	return p
}

// holds reports whether the payload can hold this package's field with a name.
func (p payloadFields) holds(name string) bool { return p.fields != nil && !p.foreign[name] }

// checkHolds returns why the payload cannot hold an instance's weight or metadata, or nil.
func (p payloadFields) checkHolds(i Instance) error {
	var cannot string
	switch {
	case i.Weight != p.weight && !p.holds("weight"):
		cannot = fmt.Sprintf("the weight %d", i.Weight)
	case !maps.Equal(i.Metadata, p.metadata) && !p.holds("metadata"):
		cannot = "metadata"
	default:
		return nil
	}
	if p.fields == nil {
		return fmt.Errorf("%w: payload %.100q is not a JSON object, so it cannot hold %s", errInvalid,
			i.Payload, cannot)
	}
	return fmt.Errorf("%w: payload %.100q has a field of another program with this name, so it cannot hold %s",
		errInvalid, i.Payload, cannot)
}

// encodeFor returns the payload for an instance. It writes the fields that differ, so what a Java
// program has written stays as it is.
func (p payloadFields) encodeFor(i Instance) json.RawMessage {
	changed := false
	set := func(name string, value any, same, write bool) {
		if same || !p.holds(name) {
			return
		}
		changed = true
		delete(p.fields, name)
		if write {
			p.fields[name] = mustEncode(json.Marshal(value))
		}
	}
	set("weight", i.Weight, i.Weight == p.weight, i.Weight != 1)
	set("metadata", i.Metadata, maps.Equal(i.Metadata, p.metadata), len(i.Metadata) > 0)
	set("disabled", i.Disabled, i.Disabled == p.disabled, i.Disabled != "")
	switch {
	case changed && len(p.fields) > 0:
		return mustEncode(json.Marshal(p.fields))
	case changed || len(i.Payload) == 0:
		return json.RawMessage("null")
	}
	return i.Payload
}

// decodeInstance decodes the data of an instance's node. The error wraps framework.ErrBadRecord.
func decodeInstance(service, id string, data []byte) (Instance, error) {
	var r instanceRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return Instance{}, fmt.Errorf("%w: instance %s of %s: %w", framework.ErrBadRecord, id, service, err)
	}
	p := parsePayload(r.Payload)
	i := Instance{Service: service, ID: id, Weight: p.weight, Metadata: p.metadata, Disabled: p.disabled,
		Registered: stored.Time(time.UnixMilli(r.Time)).UTC(), URISpec: r.URISpec.String()}
	if len(r.Payload) > 0 && string(r.Payload) != "null" {
		i.Payload = r.Payload
	}
	switch {
	case r.Enabled == nil || *r.Enabled: // older releases of Curator do not write it
		i.Disabled = ""
	case i.Disabled == "":
		i.Disabled = "disabled"
	}
	if r.Address != nil {
		i.Address = *r.Address
	}
	if r.Port != nil {
		i.Port = *r.Port
	}
	if r.SSLPort != nil {
		i.SSLPort = *r.SSLPort
	}
	if err := i.checkFields(); err != nil {
		return Instance{}, fmt.Errorf("%w: %w", framework.ErrBadRecord, err)
	}
	return i, nil
}

// encodeInstance returns the data for an instance's node. before is the node's former data, or nil;
// its unknown fields stay.
func encodeInstance(i Instance, before []byte) []byte {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(before, &fields) // data that is not an object is replaced
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	set := func(name string, value any) { fields[name] = mustEncode(json.Marshal(value)) }
	port := func(p int) any {
		if p == 0 {
			return nil
		}
		return p
	}
	set("name", i.Service)
	set("id", i.ID)
	set("address", i.Address)
	set("port", port(i.Port))
	set("sslPort", port(i.SSLPort))
	set("enabled", i.Disabled == "")
	set("registrationTimeUTC", i.Registered.UnixMilli())
	if _, there := fields["serviceType"]; !there {
		fields["serviceType"] = json.RawMessage(`"DYNAMIC"`)
	}
	var spec *uriSpec
	if json.Unmarshal(fields["uriSpec"], &spec) != nil || spec.String() != i.URISpec {
		spec = parseURISpec(i.URISpec)
	}
	set("uriSpec", spec)
	fields["payload"] = parsePayload(i.Payload).encodeFor(i)
	return mustEncode(json.Marshal(fields))
}

func mustEncode(data []byte, err error) []byte {
	if err != nil {
		// it has only strings, numbers and what was JSON before
		panic("registry: an instance cannot be written: " + err.Error())
	}
	return data
}
