import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '#kit/foundation/fault.ts'
import { readVersion } from '#kit/host/package-manifest.ts'
import { readSidecar } from '#engine/image/sources/source.ts'

const test = suite('sidecars and manifest')
const DIGEST = 'ab'.repeat(32)

async function createFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-sidecar-'))
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) }
}

/** The digest, null, or what the Fault says. */
const found = (path: string) =>
  readSidecar(path).catch((thrown: unknown) =>
    thrown instanceof Fault ? `${thrown.code}: ${thrown.message}` : Promise.reject(thrown),
  )

test('the digest beside an image, and none where there is no file', async () => {
  await using fixture = await createFolder()
  const image = join(fixture.folder, 'a.img.zst')
  assert.is(await found(image), null)
  await writeFile(`${image}.sha256`, `${'0'.repeat(64)}  b.img\n${DIGEST}  /out/a.img.zst\n`)
  assert.is(await found(image), DIGEST)
})
test('a list in UTF-16, as another system writes it', async () => {
  await using fixture = await createFolder()
  const image = join(fixture.folder, 'a.img')
  await writeFile(`${image}.sha256`, Buffer.from(`\ufeff${DIGEST}  a.img\r\n`, 'utf16le'))
  assert.is(await found(image), DIGEST)
})
test('a file that says nothing of the image is not passed over', async () => {
  await using fixture = await createFolder()
  const image = join(fixture.folder, 'a.img')
  await writeFile(`${image}.sha256`, `${DIGEST}  b.img\n`)
  assert.match(String(await found(image)), /^input-invalid: .*does not list a\.img$/)
  await writeFile(`${image}.sha256`, Buffer.alloc(3 * 1024 * 1024, 'x'))
  assert.match(String(await found(image)), /^input-invalid: .*is not a list of SHA-256 digests$/)
  await rm(`${image}.sha256`)
  await mkdir(`${image}.sha256`)
  assert.match(String(await found(image)), /^input-invalid: .*cannot be read/)
})
test("the version is package.json's", async () => {
  const { version } = JSON.parse(await readFile('package.json', 'utf8'))
  assert.is(await readVersion(), version)
})
test.run()
