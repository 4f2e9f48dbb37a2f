import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault, isFull, isMissing, systemCodeOf } from '#kit/foundation/fault.ts'

const test = suite('system error')
const thrownBy = (act: Promise<unknown>) =>
  act.then(
    () => null,
    (thrown: unknown) => thrown,
  )

test('an error that Node throws is recognised by its code', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-system-error-'))
  try {
    await writeFile(join(folder, 'file'), '')
    const absent = await thrownBy(readFile(join(folder, 'none')))
    const below = await thrownBy(readFile(join(folder, 'file', 'none')))
    const folderItself = await thrownBy(readFile(folder))
    assert.equal([absent, below, folderItself].map(systemCodeOf), ['ENOENT', 'ENOTDIR', 'EISDIR'])
    assert.equal([absent, below, folderItself].map(isMissing), [true, true, false])
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('a full disk is no missing file', async () => {
  await using file = await open('/dev/full', 'w')
  const thrown = await thrownBy(file.write('x'))
  assert.is(systemCodeOf(thrown), 'ENOSPC')
  assert.is(isFull(thrown), true)
  assert.is(isMissing(thrown), false)
})

test('a Fault, and what is no error of the system, have no such code', () => {
  for (const thrown of [
    new Fault('not-found', 'x'),
    new Error('x'),
    null,
    'ENOENT',
    { code: 'ENOENT' },
  ]) {
    assert.is(systemCodeOf(thrown), null)
    assert.is(isMissing(thrown), false)
  }
})

test.run()
