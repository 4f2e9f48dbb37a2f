/** The initrd's scripts say names as the contract has them, and are fit for their shell. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { BOOT_FACTS, IMAGES_PARTITION, KERNEL_ARGS, LIVE_PATHS } from '#appliance/contract.ts'

const test = suite('scripts of the initrd')
const FOLDER = join(import.meta.dirname, '../../../overlays/initrd')
const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .map((name) => join(FOLDER, name))
  .filter((path) => statSync(path).isFile())
const text = files.map((path) => readFileSync(path, 'utf8')).join('\n')

test('arguments of the kernel command line', () => {
  const { server, mac, token, squashfs, sha256, media, verify } = KERNEL_ARGS
  for (const name of [server, mac, token, squashfs, sha256, media, verify]) {
    assert.match(text, new RegExp(String.raw`param ${name.replace('.', String.raw`\.`)}\b`), name)
  }
})

test('facts for later programs', () => {
  const noted = [...text.matchAll(/^\s*note (\w+) /gm)].map(([, key]) => key)
  assert.equal(new Set(noted), new Set(Object.values(BOOT_FACTS)))
})

test('paths and partitions', () => {
  assert.match(text, `facts=${LIVE_PATHS.bootFacts}\n`)
  assert.match(text, `PARTNAME=${IMAGES_PARTITION.name} `)
})

test('each failure comes with a hint', () => {
  const calls = [...text.matchAll(/^.*\bfail (?!\(\)).*$/gm)].map(([line]) => line)
  assert.ok(calls.length > 8)
  for (const call of calls) {
    const rest = text.slice(text.indexOf(call) + call.length)
    const whole = call.endsWith('\\') ? call + (rest.split('\n')[1] ?? '') : call
    assert.is((whole.match(/'[^']*'|"(?:[^"\\]|\\.)*"/g) ?? []).length >= 2, true, whole)
  }
})

test.run()
