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

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Instance is one instance of a service.
type Instance struct {
	// Service is the service's name, and the name of its directory.
	Service string
	// ID is unique within the service, and the name of the instance's node. Default: a UUID.
	ID string
	// Address is a host name or an IP address.
	Address string
	// Port is the port of plain connections, SSLPort the port of TLS. 0 means that the instance does not listen there; one of them must not be 0.
	Port, SSLPort int
	// Weight is this instance's share of the calls, relative to the other weights, 1 to 1000. Default 1.
	Weight int
	// Metadata is for callers to read, such as the version of the program.
	Metadata map[string]string
	// Disabled is the reason why the registered instance gets no calls, or "" if it gets calls.
	Disabled string
	// Registered is when the instance was registered, by the clock of its machine. Default: the time of Register.
	Registered time.Time
	// Payload is the JSON of Curator's payload, or nil. If it is an object, Weight, Metadata and Disabled are stored as its fields "weight", "metadata" and "disabled". If it is not, the instance
	// cannot have a weight or metadata. Java programs read it as the class that its field "@class" names, or as a map without that field.
	Payload json.RawMessage
	// URISpec is the pattern by which Java programs build the instance's URI, such as "{scheme}://{address}:{port}/v2". This package does not use it.
	URISpec string
}

// unhealthy begins Instance.Disabled when the instance's own health check has disabled it.
const unhealthy = "unhealthy: "

// maxCheckError is how many bytes of the text of a health check's error are stored.
const maxCheckError = 4 << 10

// HostPort returns "address:port": for TLS with SSLPort, else with Port. If that port is 0, it uses the other one.
func (i Instance) HostPort(tls bool) string {
	port := i.Port
	if tls && i.SSLPort != 0 || port == 0 {
		port = i.SSLPort
	}
	return net.JoinHostPort(i.Address, strconv.Itoa(port))
}

// checkFields returns why an instance cannot be used, or nil. The error wraps ErrInvalid. Any client with write permission may have written the address.
func (i Instance) checkFields() error {
	bad := func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune(`/\@?#%"<>`, r)
	}
	switch {
	case i.Service == "" || framework.ValidatePath("/"+i.Service) != nil || strings.Contains(i.Service, "/"):
		return fmt.Errorf("%w: %q cannot be a service's name", ErrInvalid, i.Service)
	case i.ID == "" || framework.ValidatePath("/"+i.ID) != nil || strings.Contains(i.ID, "/"):
		return fmt.Errorf("%w: %q cannot be an id", ErrInvalid, i.ID)
	case i.Address == "" || len(i.Address) > 255 || strings.ContainsFunc(i.Address, bad) || strings.ContainsRune(i.Address, ':') && net.ParseIP(i.Address) == nil:
		return fmt.Errorf("%w: %.300q cannot be an address, give a host name or an IP address", ErrInvalid, i.Address)
	case i.Port < 0 || i.Port > 65535 || i.SSLPort < 0 || i.SSLPort > 65535 || i.Port == 0 && i.SSLPort == 0:
		return fmt.Errorf("%w: ports %d and %d, one must be 1 to 65535", ErrInvalid, i.Port, i.SSLPort)
	case i.Weight < 1 || i.Weight > 1000:
		return fmt.Errorf("%w: weight %d, it must be 1 to 1000", ErrInvalid, i.Weight)
	case len(i.Payload) > 0 && !json.Valid(i.Payload):
		return fmt.Errorf("%w: payload %.100q is not JSON", ErrInvalid, i.Payload)
	case (i.Weight != 1 || len(i.Metadata) > 0) && !i.isPayloadObject():
		return fmt.Errorf("%w: payload %.100q is not a JSON object, so it cannot hold a weight or metadata", ErrInvalid, i.Payload)
	}
	return nil
}

// reasonAfterCheck returns the reason for which the instance is disabled after a health check that has returned err. disabledByCheck is the reason for which the check has disabled the
// instance, or "" if it has not. A payload that is not an object does not hold the reason. Then reasonAfterCheck takes any reason for that of the check.
func (i Instance) reasonAfterCheck(err error, disabledByCheck string) string {
	switch {
	case err == nil && disabledByCheck != "" && (i.Disabled == disabledByCheck || !i.isPayloadObject()):
		return ""
	case err != nil && i.Disabled == "":
		return unhealthy + recipe.StoredText(err.Error(), maxCheckError)
	}
	return i.Disabled
}

// isPayloadObject reports whether the payload can hold the fields of lockstepPayload: it is a JSON object, or there is none.
func (i Instance) isPayloadObject() bool {
	return len(i.Payload) == 0 || json.Unmarshal(i.Payload, new(map[string]json.RawMessage)) == nil
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

// lockstepPayload are the fields of an instance that Curator does not have. They are stored in the payload; its other fields belong to Java programs and stay.
type lockstepPayload struct {
	Weight   int               `json:"weight,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Disabled string            `json:"disabled,omitempty"`
}

// decodeInstance decodes the data of an instance's node. The error wraps ErrInvalid.
func decodeInstance(service, id string, data []byte) (Instance, error) {
	var r instanceRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return Instance{}, fmt.Errorf("%w: %s of %s: %w", ErrInvalid, id, service, err)
	}
	i := Instance{Service: service, ID: id, Weight: 1, Registered: time.UnixMilli(r.Time).UTC(), URISpec: r.URISpec.String()}
	if len(r.Payload) > 0 && string(r.Payload) != "null" {
		i.Payload = r.Payload
	}
	var p lockstepPayload
	if json.Unmarshal(r.Payload, &p) == nil { // a payload that is not an object belongs to a Java program
		i.Metadata, i.Disabled = p.Metadata, p.Disabled
		if p.Weight > 0 {
			i.Weight = min(p.Weight, 1000)
		}
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
	return i, i.checkFields()
}

// encodeInstance returns the data for an instance's node. before is the node's former data, or nil; its unknown fields stay.
func encodeInstance(i Instance, before []byte) []byte {
	var fields, inner map[string]json.RawMessage
	_ = json.Unmarshal(before, &fields) // data that is not an object is replaced
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	isObject := i.isPayloadObject() // else it is a text or a list of a Java program
	if isObject && len(i.Payload) > 0 {
		_ = json.Unmarshal(i.Payload, &inner)
	}
	if inner == nil {
		inner = map[string]json.RawMessage{}
	}
	set := func(into map[string]json.RawMessage, name string, value any, write bool) {
		delete(into, name)
		if write {
			into[name] = mustEncode(json.Marshal(value))
		}
	}
	set(inner, "weight", i.Weight, i.Weight != 1)
	set(inner, "metadata", i.Metadata, len(i.Metadata) > 0)
	set(inner, "disabled", i.Disabled, i.Disabled != "")
	port := func(p int) any {
		if p == 0 {
			return nil
		}
		return p
	}
	set(fields, "name", i.Service, true)
	set(fields, "id", i.ID, true)
	set(fields, "address", i.Address, true)
	set(fields, "port", port(i.Port), true)
	set(fields, "sslPort", port(i.SSLPort), true)
	set(fields, "enabled", i.Disabled == "", true)
	set(fields, "registrationTimeUTC", i.Registered.UnixMilli(), true)
	if _, there := fields["serviceType"]; !there {
		fields["serviceType"] = json.RawMessage(`"DYNAMIC"`)
	}
	var spec *uriSpec
	if json.Unmarshal(fields["uriSpec"], &spec) != nil || spec.String() != i.URISpec {
		spec = parseURISpec(i.URISpec)
	}
	set(fields, "uriSpec", spec, true)
	switch {
	case !isObject:
		fields["payload"] = i.Payload
	case len(inner) > 0:
		fields["payload"] = mustEncode(json.Marshal(inner))
	default:
		fields["payload"] = json.RawMessage("null")
	}
	return mustEncode(json.Marshal(fields))
}

func mustEncode(data []byte, err error) []byte {
	if err != nil {
		panic("registry: an instance cannot be written: " + err.Error()) // it has only strings, numbers and what was JSON before
	}
	return data
}
