import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createMarks } from '#kit/host/marks.ts'

const test = suite('marks')

async function inFolder(act: (at: (name: string) => string) => Promise<void>) {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-marks-'))
  try {
    await act((name) => join(folder, name))
  } finally {
    await rm(folder, { recursive: true })
  }
}

test('a mark is in the kernel log, on the console and in the status file, as one safe line', async () => {
  await inFolder(async (at) => {
    await Promise.all(['kmsg', 'console'].map((name) => writeFile(at(name), '')))
    const marks = createMarks({ kmsg: at('kmsg'), console: at('console'), status: at('status') })
    await marks.mark('auto-flash\nstarting\u001b[2J')
    await marks.status('write 50%')
    const line = 'flasher: auto-flash\\x0astarting\\x1b[2J\n'
    assert.is(await readFile(at('kmsg'), 'utf8'), `<6>${line}`)
    assert.is(await readFile(at('status'), 'utf8'), `${line}flasher: write 50%\n`)
    assert.is(await readFile(at('console'), 'utf8'), `\r\n${line.replace('\n', '\r\n')}`)
  })
})

test('what cannot be written to is left out', async () => {
  await inFolder(async (at) => {
    await writeFile(at('console'), '')
    const nowhere = { kmsg: at('no/kmsg'), status: at('no/status') }
    await createMarks({ ...nowhere, console: at('console') }).mark('hello')
    assert.is(await readFile(at('console'), 'utf8'), '\r\nflasher: hello\r\n')
    await createMarks({ ...nowhere, console: at('no/console') }).mark('hello')
  })
})

test.run()
