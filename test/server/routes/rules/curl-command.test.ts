/** Commands to paste: whatever is in a name, a shell takes it as text. */
import { execFileSync } from 'node:child_process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderCurl } from '#server/routes/rules/curl-command.ts'

const test = suite('commands to paste')

/** What a shell passes to `curl`, argument by argument. */
const argumentsOf = (command: string): readonly string[] =>
  execFileSync('/bin/sh', ['-c', `curl() { printf '%s\\0' "$@"; }\n${command}`], {
    env: { FLASHER_TOKEN: 'the token' },
  })
    .toString()
    .split('\0')
    .slice(0, -1)

test('a shell passes on what was meant, and fills in the token', () => {
  const body = { name: `it's "quoted" $(reboot) \`id\` \\ ${'\n'}%s`, labels: ["';reboot;'"] }
  const url = "http://flasher.example/machines?q=label:'a b'&x=$HOME"
  const given = argumentsOf(renderCurl({ method: 'PUT', url, body }))
  assert.equal(given.slice(0, 4), ['-fsS', '-X', 'PUT', url])
  assert.equal(given.slice(4, 6), ['-H', 'Authorization: Bearer the token'])
  assert.equal(given.slice(6, 9), ['-H', 'Content-Type: application/json', '-d'])
  assert.equal(JSON.parse(given[9] ?? ''), body)
  assert.is(given.length, 10)
})

test('what would turn or hide text on a page is written in escapes, and means the same', () => {
  const body = { serial: 'A\u202eB\u0085\u200d', name: '三号機' }
  const command = renderCurl({ method: 'PUT', url: 'http://flasher.example/', body })
  assert.not.match(command, /\u0085|\u200d|\u202e/)
  assert.match(command, /三号機/)
  assert.equal(JSON.parse(argumentsOf(command).at(-1) ?? ''), body)
})

test('what is read needs no body', () => {
  assert.is(
    renderCurl({ method: 'GET', url: 'http://127.0.0.1:8080/machines' }),
    `curl -fsS 'http://127.0.0.1:8080/machines' \\\n  -H "Authorization: Bearer $FLASHER_TOKEN"`,
  )
})

test.run()
