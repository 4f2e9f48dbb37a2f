import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isRedirect, nextTarget } from '#kit/net/rules/image-location.ts'

const test = suite('redirect')
const from = (url: string) => ({ url, authorization: 'Basic abc' })

const next = (to: string) => {
  const result = nextTarget(from('https://a.test/x'), to)
  return result.ok ? result.value : result.refusal
}

test('keeps credentials on one origin and drops them on any other', () => {
  assert.equal(next('/y'), { url: 'https://a.test/y', authorization: 'Basic abc' })
  for (const url of ['https://b.test/y', 'https://a.test:444/y', 'https://a.test.evil/y']) {
    assert.equal(next(url), { url, authorization: null })
  }
  assert.equal(next('https://u:p@b.test/y#f'), { url: 'https://b.test/y', authorization: null })
})

test('never goes from https to http with credentials', () => {
  const secret = nextTarget(from('https://a.test/x'), 'http://a.test/x')
  assert.is(secret.ok, false)
  const open = nextTarget({ url: 'https://a.test/x', authorization: null }, 'http://b.test/x')
  assert.equal(open, { ok: true, value: { url: 'http://b.test/x', authorization: null } })
})

test('goes nowhere but to http and https', () => {
  for (const to of [undefined, 'http://', 'file:///etc/shadow', 'data:,x']) {
    assert.is(nextTarget(from('http://a.test/'), to).ok, false, to ?? 'none')
  }
})

test('knows the statuses that redirect', () => {
  assert.equal(
    [200, 300, 301, 302, 303, 304, 307, 308].filter(isRedirect),
    [301, 302, 303, 307, 308],
  )
})

test.run()
