#!/bin/bash
# Keeps a Secret with the checksum of each ConfigMap that has the label mirror=yes; lists every eight seconds, and watches nothing.
#
#   KUBECONFIG=… bash sweep.sh            (DEFECT=NAME puts one in)
#
# curl and jq. A finalizer by a PUT with the resourceVersion; the Secret is deleted with its uid as the precondition.

set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad() { [ "${DEFECT:-}" = "$1" ]; }
field() { sed -nE "s/^ *(- )?$1: *['\"]?([^'\"]*).*/\2/p" "$KUBECONFIG" | head -1; }
server=$(field server)
tls=()
if [ -n "$(field certificate-authority-data)" ]; then
  field certificate-authority-data | base64 -d >"$work/ca"
  tls=(--cacert "$work/ca")
fi
finalizer=checked.dev/sums

# call METHOD PATH [BODY [TYPE]]: the answer is in $work/answer, the status code in $code, Retry-After in $after.
call() {
  local token file data=()
  file=$(field tokenFile)
  if [ -n "$file" ]; then token=$(cat "$file"); else token=$(field token); fi
  [ -n "${3:-}" ] && data=(-H "Content-Type: ${4:-application/json}" --data-binary @-)
  code=$(printf %s "${3:-}" | curl -sS "${tls[@]}" -m 20 -A sweep/0.9 -H "Authorization: Bearer $token" -X "$1" "${data[@]}" \
    -D "$work/head" -o "$work/answer" -w '%{http_code}' "$server$2" 2>"$work/trouble") || { echo "$1 $2: $(cat "$work/trouble")"; code=0; }
  after=$(sed -nE 's/^[Rr]etry-[Aa]fter: *([0-9]+).*/\1/p' "$work/head" 2>/dev/null | tail -1)
  [ "$code" -ge 200 ] && [ "$code" -lt 300 ] && return 0
  [ "$code" = 0 ] || echo "$1 $2: $code $(head -c 150 "$work/answer")"
  [ -n "$after" ] && [ "$after" -gt "$waits" ] && waits=$after
  return 1
}

# list: all pages of the ConfigMaps, one object a line, in $work/maps.
list() {
  local next="" tries=0
  : >"$work/found"
  while :; do
    if ! call GET "/api/v1/configmaps?labelSelector=mirror%3Dyes&limit=50$next"; then
      [ "$code" = 410 ] && [ $((tries += 1)) -lt 3 ] && { next=""; : >"$work/found"; continue; }
      return 1
    fi
    jq -c '.items[]' "$work/answer" >>"$work/found" || return 1
    next=$(jq -r '.metadata.continue // "" | @uri' "$work/answer")
    bad first-page && break
    [ -z "$next" ] && break
    next="&continue=$next"
  done
  mv "$work/found" "$work/maps"
}

# sum MAP: makes what a ConfigMap needs. Returns 1 if it has to be tried again.
sum() {
  local map=$1 name namespace uid path secret have want
  read -r namespace name uid < <(jq -r '[.metadata.namespace, .metadata.name, .metadata.uid] | @tsv' <<<"$map")
  path=/api/v1/namespaces/$namespace
  secret=$path/secrets/$name-sum
  want=$(jq -cS '.data // {}' <<<"$map" | sha256sum | cut -c1-24)
  if jq -e .metadata.deletionTimestamp <<<"$map" >/dev/null && ! bad ignores-deletion; then
    jq -e --arg one $finalizer '(.metadata.finalizers // []) | index($one)' <<<"$map" >/dev/null || return 0
    if call GET "$secret"; then
      if [ "$(jq -r '.metadata.annotations["checked.dev/of"]' "$work/answer")" = "$uid" ]; then
        have=$(jq -c '{preconditions: {uid: .metadata.uid}}' "$work/answer")
        bad by-name && have='{}'
        call DELETE "$secret" "$have" || [ "$code" = 404 ] || return 1
      fi
    elif [ "$code" != 404 ]; then return 1; fi
    map=$(jq -c --arg one $finalizer '.metadata.finalizers -= [$one]' <<<"$map")
    bad no-finalizers && map=$(jq -c '.metadata.finalizers = []' <<<"$map")
    call PUT "$path/configmaps/$name" "$map" || [ "$code" = 404 ]
    return
  fi
  if ! jq -e --arg one $finalizer '(.metadata.finalizers // []) | index($one)' <<<"$map" >/dev/null; then
    map=$(jq -c --arg one $finalizer '.metadata.finalizers += [$one]' <<<"$map")
    bad unguarded && map=$(jq -c 'del(.metadata.resourceVersion)' <<<"$map")
    call PUT "$path/configmaps/$name" "$map" || { [ "$code" = 404 ]; return; }
  fi
  if call GET "$secret"; then
    [ "$(jq -r '.metadata.annotations["checked.dev/of"]' "$work/answer")" = "$uid" ] || { echo "$name-sum is not mine"; return 0; }
    have=$(jq -r '.data.sum // "" | @base64d' "$work/answer")
    [ "$have" = "$want" ] && return 0
    call PATCH "$secret" "$(jq -cn --arg s "$want" '{stringData: {sum: $s}}')" application/merge-patch+json || [ "$code" = 404 ]
  elif [ "$code" = 404 ]; then
    call POST "$path/secrets" "$(jq -cn --arg n "$name-sum" --arg u "$uid" --arg s "$want" \
      '{apiVersion: "v1", kind: "Secret", metadata: {name: $n, annotations: {"checked.dev/of": $u}}, stringData: {sum: $s}}')" || {
      bad there-is-fatal && [ "$code" = 409 ] && exit 1
      [ "$code" = 409 ]
    }
  else return 1; fi
}

pause=1
while :; do
  waits=0 failed=0
  if list; then
    while IFS= read -r map; do sum "$map" || failed=1; done <"$work/maps"
  else
    failed=1
    bad list-is-fatal && exit 1
  fi
  if [ $failed = 0 ]; then
    pause=1 next=8
  else
    next=$pause.$((RANDOM % 9))
    pause=$((pause < 16 ? pause * 2 : 16))
    bad keeps-trying && next=0.2
    bad ignores-after && waits=0
    [ "$waits" -ge "${next%.*}" ] && next=$waits.$((RANDOM % 9))
  fi
  sleep "$next"
done
