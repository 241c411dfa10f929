package stored

// Texts are the texts with which records hold the values of an exported type, such as the states of
// a run. They stay as they are when the texts that applications see change. A text that is not
// among them, such as that of a newer release, is a value of its own.
type Texts[V ~string] map[V]string

// TextOf returns the text of a value.
func (t Texts[V]) TextOf(value V) string {
	if text, known := t[value]; known {
		return text
	}
	return string(value)
}

// ValueOf returns the value with a text.
func (t Texts[V]) ValueOf(text string) V {
	for value, known := range t {
		if known == text {
			return value
		}
	}
	return V(text)
}
