{{- /* Each page as sections: what comes before its first heading, then one for each heading. */ -}}
{{- $pages := slice -}}
{{- range (site.RegularPages | append site.Home) -}}
{{- $sections := slice -}}
{{- range split (replaceRE `(?s)<h[23] id="` "\u001f$0" .Content) "\u001f" -}}
{{- $id := "" }}{{ $heading := "" }}{{ $text := . -}}
{{- with findRE `(?s)^<h[23] id="[^"]+">.*?</h[23]>` . -}}
{{- $heading = index . 0 -}}
{{- $text = strings.TrimPrefix $heading $text -}}
{{- $id = replaceRE `(?s)^<h[23] id="([^"]+)">.*$` "$1" $heading -}}
{{- end -}}
{{- $sections = $sections | append (dict "id" $id "heading" ($heading | plainify | htmlUnescape) "text" ($text | plainify | htmlUnescape)) -}}
{{- end -}}
{{- $pages = $pages | append (dict "url" (cond .IsHome "index.html" (strings.TrimPrefix "/" .RelPermalink)) "title" (partial "title.html" .) "sections" $sections) -}}
{{- end -}}
searchIndexLoaded({{ $pages | jsonify }});
