/** What each role and each scope of a token passes, written by hand. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  decideGate,
  type Role,
  SCOPES,
  scopesOf,
  type PageScope,
} from '#kit/web/answers/rules/rights.ts'

const test = suite('gate')

test('the gate lets nobody do what their role does not say', () => {
  const wanted: readonly PageScope[] = [...SCOPES, 'own']
  const passes = (role: Role | null) =>
    wanted.filter((each) => decideGate({ kind: 'person', name: 'anna', role }, each) === null)
  assert.equal(passes(null), ['own'])
  assert.equal(passes('look'), ['read', 'own'])
  assert.equal(passes('operate'), ['read', 'machines', 'flash', 'power', 'own'])
  assert.equal(passes('administrate'), wanted)
  for (const scope of SCOPES) {
    const scopes = [scope]
    const open = SCOPES.filter((each) => decideGate({ kind: 'token', scopes }, each) === null)
    assert.equal(open, scope === 'admin' ? SCOPES : [scope])
  }
  assert.is(decideGate({ kind: 'token', scopes: SCOPES }, 'own')?.why, 'forbidden')
  assert.is(decideGate({ kind: 'administrator' }, 'admin'), null)
  assert.equal(scopesOf(null), [])
})

test.run()
