import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listReadiness, type ReadinessFacts, describeTftp } from '#fleet/boot/rules/readiness.ts'

const test = suite('readiness')

const READY: ReadinessFacts = {
  sets: [{ arch: 'x86_64', version: '1.2.3' }],
  catalog: { images: 2, error: null, isSet: true },
  hasContact: true,
  tftp: describeTftp({ kind: 'serves' }, '127.0.0.1'),
  disk: { freeBytes: 2 ** 33, isLow: false },
}

const judge = (change: Partial<ReadinessFacts>) =>
  listReadiness({ ...READY, ...change })
    .filter(({ ok }) => !ok)
    .map(({ id, state, href }) => `${id} ${state} ${href}`)

test('all of it there', () => {
  assert.equal(judge({}), [])
})

test('each thing that is missing, with the page where it is set up', () => {
  const rows: readonly (readonly [Partial<ReadinessFacts>, string])[] = [
    [{ sets: [] }, 'netboot missing /ui/netboot#install'],
    [{ catalog: { images: 0, error: null, isSet: true } }, 'catalog missing /ui/cache#add'],
    [{ catalog: { images: 0, error: null, isSet: false } }, 'catalog missing /ui/cache#add'],
    [{ catalog: { images: 0, error: 'x', isSet: true } }, 'catalog missing /ui/cache'],
    [{ catalog: { images: 3, error: 'x', isSet: true } }, 'catalog attention /ui/cache'],
    [{ hasContact: false }, 'dhcp unknown /ui/dhcp'],
    [{ tftp: describeTftp({ kind: 'refused' }, 'h') }, 'tftp optional /ui/netboot#tftp'],
    [{ tftp: describeTftp({ kind: 'file-missing' }, 'h') }, 'tftp attention /ui/netboot#tftp'],
    [{ tftp: describeTftp({ kind: 'unasked' }, 'h') }, 'tftp unknown /ui/netboot#tftp'],
    [{ disk: { freeBytes: 1, isLow: true } }, 'disk attention /ui/settings#storage'],
    [{ disk: null }, 'disk attention /ui/settings#storage'],
  ]
  for (const [change, expected] of rows) assert.equal(judge(change), [expected])
})

test('what was never seen or checked has no tick', () => {
  const nothing = listReadiness({
    sets: [],
    catalog: { images: 0, error: null, isSet: true },
    hasContact: false,
    tftp: describeTftp({ kind: 'unasked' }, 'h'),
    disk: null,
  })
  assert.equal(
    nothing.filter(({ ok }) => ok),
    [],
  )
})

test('each row says what is true, why it matters, and what its button does', () => {
  for (const { id, text, why, action } of listReadiness(READY)) {
    assert.match(text, /^[A-Z0-9].*\.$/, id)
    assert.match(why, /^[A-Z].*\.$/, id)
    assert.match(action, /^[A-Z][\w ]+$/, id)
  }
})

test.run()
