import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listReadiness, type ReadinessFacts } from '../../../runtime/core/boot/readiness.ts'
import { describeTftp } from '../../../runtime/core/boot/tftp.ts'

const test = suite('readiness')

const READY: ReadinessFacts = {
  sets: [{ arch: 'x86_64', version: '1.2.3' }],
  fetchObstacle: null,
  catalog: { images: 2, error: null, isSet: true },
  tftp: describeTftp({ kind: 'serves' }, '127.0.0.1'),
  hasPassword: true,
  disk: { freeBytes: 2 ** 33, isLow: false },
}

const judge = (change: Partial<ReadinessFacts>) =>
  listReadiness({ ...READY, ...change })
    .filter(({ ok }) => !ok)
    .map(({ id, state, href }) => `${id} ${state} ${href}`)

test('all of it there', () => {
  assert.equal(judge({}), [])
})

test('each thing that is missing, with the page where it is put right', () => {
  const rows: readonly (readonly [Partial<ReadinessFacts>, string])[] = [
    [{ sets: [] }, 'netboot missing /ui/netboot'],
    [{ catalog: { images: 0, error: null, isSet: true } }, 'catalog missing /ui/settings#ramboot'],
    [{ catalog: { images: 0, error: null, isSet: false } }, 'catalog missing /ui/settings#ramboot'],
    [{ catalog: { images: 3, error: 'x', isSet: true } }, 'catalog attention /ui/settings#ramboot'],
    [{ tftp: describeTftp({ kind: 'refused' }, 'h') }, 'tftp missing /ui/netboot#tftp'],
    [{ tftp: describeTftp({ kind: 'file-missing' }, 'h') }, 'tftp attention /ui/netboot#tftp'],
    [{ hasPassword: false }, 'password missing /ui/account'],
    [{ disk: { freeBytes: 1, isLow: true } }, 'disk attention /ui/settings'],
    [{ disk: null }, 'disk attention /ui/settings'],
  ]
  for (const [change, expected] of rows) assert.equal(judge(change), [expected])
})

test('the text says how to fix it', () => {
  const [, row] = listReadiness({ ...READY, sets: [], fetchObstacle: 'no site is set' })
  assert.match(row?.text ?? '', /set a release site/)
})

test.run()
