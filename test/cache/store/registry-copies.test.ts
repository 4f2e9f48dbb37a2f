/** Accepted captures go to a real registry, and what others pull there is the image byte for byte. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { startRegistryCopies } from '../../../runtime/cache/captures/registry-copies.ts'
import { createRecords } from '../../../runtime/kit/host/records.ts'
import { nameCopy } from '../../../runtime/cache/rules/copy-name.ts'
import { renderOrasRef } from '../../../runtime/kit/net/registry/rules/oras.ts'
import { makeCapture, openCaptureLab, uploadCapture } from '../../support/capture/uploads.ts'
import { startRegistry } from '../../support/http/registry.ts'
import { makeFolder, QUIET, until } from '../../support/server/image-cache.ts'

const test = suite('cache: accepted captures in a registry')
const run = $({ quiet: true })
const IMAGE = await makeCapture()
const { file: FILE, end: END } = IMAGE
const NAME = 'Web 42.img.zst'
const NOWHERE = () => 'oras://127.0.0.1:1/captures'
const quick = { tickMs: 10, againMs: 50, retryMs: 1, env: {} }

type Lab = Awaited<ReturnType<typeof openCaptureLab>>

async function acceptOne(lab: Lab, name = NAME) {
  const id = await uploadCapture(lab.machine(lab.sign(name)), name, IMAGE)
  assert.is((await lab.operator.post(`/captures/${id}/accept`, {})).status, 201)
}

async function listCopies(lab: Lab): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return Object((await lab.operator.ask('GET', '/captures')).body).copies
}

test('an accepted capture is stored, listed, and pulled by others byte for byte', async () => {
  await using registry = await startRegistry()
  const target = () => `oras://${registry.host}/captures`
  await using lab = await openCaptureLab({ registryCopies: { ...quick, target } })
  assert.equal(await listCopies(lab), [])
  await acceptOne(lab)
  await until(async () => (await listCopies(lab))[0]?.['status'] === 'stored')
  const [{ at: _, ...copy } = { at: null }] = await listCopies(lab)
  const tag = END.sha256.slice(0, 12)
  const to = `oras://${registry.host}/captures/web-42:${tag}`
  assert.equal(copy, { name: NAME, sha256: END.sha256, to, status: 'stored', reason: null })
  const at = `docker://${registry.host}/captures/web-42:${tag}`
  const raw = JSON.parse((await run`skopeo inspect --raw --tls-verify=false ${at}`).stdout)
  assert.is(raw.layers[0].digest, `sha256:${END.sha256}`)
  assert.is(raw.layers[0].annotations['vnd.flasher.index_sha256'], END.index_sha256)
  const blobs = `http://${registry.host}/v2/captures/web-42/blobs/sha256:${END.sha256}`
  assert.ok(Buffer.from(await (await fetch(blobs)).arrayBuffer()).equals(FILE))
})

test('what is not yet accepted is not taken for gone, however long that takes', async () => {
  await using folder = await makeFolder()
  const records = createRecords(join(folder.path, 'records'))
  const parts = {
    ...quick,
    records,
    folder: folder.path,
    now: () => new Date(),
    log: QUIET,
    target: NOWHERE,
  }
  await using copies = await startRegistryCopies(parts)
  const copy = await copies.add(NAME, END.sha256)
  assert.ok(copy)
  await new Promise((resolve) => setTimeout(resolve, 4 * quick.againMs))
  assert.is(copies.list()[0]?.status, 'waiting')
  // Somebody who accepts it as well is refused, as it is being accepted.
  const other = await copies.add(NAME, END.sha256)
  assert.ok(other)
  await copies.drop(other)
  await copies.begin(copy)
  await until(() => copies.list()[0]?.status === 'gone')
})

test('a registry that is away is tried again, its reason is listed and logged once', async () => {
  await using registry = await startRegistry()
  await using readOnly = await startRegistry({ readOnly: true, over: registry })
  const lines: string[] = []
  const note = (line: string) => void lines.push(line)
  const target = () => `oras://${readOnly.host}/captures`
  const log = { ...QUIET, info: note, warn: note }
  await using lab = await openCaptureLab({ registryCopies: { ...quick, target }, log })
  await acceptOne(lab)
  await until(async () => (await listCopies(lab))[0]?.['reason'] !== null)
  const [copy] = await listCopies(lab)
  assert.is(copy?.['status'], 'waiting')
  assert.match(String(copy?.['reason']), /HTTP 405/)
  await new Promise((resolve) => setTimeout(resolve, 300))
  assert.is(lines.filter((line) => line.includes('cannot be stored')).length, 1)
})

test('what is removed before it is stored is said to be gone; a refused name stores nothing', async () => {
  const state = { target: '' }
  const target = () => state.target
  await using lab = await openCaptureLab({ registryCopies: { ...quick, target } })
  await acceptOne(lab, 'first.img.zst')
  assert.equal(await listCopies(lab), [], 'it is off')
  state.target = 'oras://127.0.0.1:1/captures'
  const other = lab.machine(lab.sign('second.img.zst', { order: 'order-0002' }))
  const id = await uploadCapture(other, 'second.img.zst', IMAGE)
  const taken = await lab.operator.post(`/captures/${id}/accept`, { name: 'first.img.zst' })
  assert.is(taken.status, 409)
  assert.equal(await listCopies(lab), [])
  await lab.operator.post(`/captures/${id}/accept`, {})
  await until(async () => (await listCopies(lab))[0]?.['reason'] !== null)
  await rm(join(lab.folder, 'second.img.zst'))
  await until(async () => (await listCopies(lab))[0]?.['status'] === 'gone')
})

const NAMES: readonly (readonly [string, string, string | null])[] = [
  ['oras://registry.lab:5000/captures', 'Web 42.img.zst', 'captures/web-42'],
  ['oras://registry.lab/a/b/', '../../etc.img.zst', 'a/b/etc'],
  ['oras://registry.lab/a', '日本.img.zst', 'a/image'],
  ['oras://registry.lab/a', `${'x'.repeat(300)}.img.zst`, `a/${'x'.repeat(100)}`],
  ['oras://registry.lab/a:v1', 'b', null],
  ['http://registry.lab/a', 'b', null],
  ['', 'b', null],
]
for (const [target, name, repository] of NAMES) {
  test(`${name.slice(0, 20)} below ${target || 'nothing'} is ${repository ?? 'not stored'}`, () => {
    const ref = nameCopy(target, name, 'a'.repeat(64))
    assert.is(ref?.repository ?? null, repository)
    if (ref !== null) assert.match(renderOrasRef(ref), /:a{12}$/)
  })
}

test.run()
