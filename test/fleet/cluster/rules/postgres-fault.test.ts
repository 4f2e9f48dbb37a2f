import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { describePostgresError } from '#fleet/cluster/rules/postgres-fault.ts'

const test = suite('faults of PostgreSQL')
const thrown = (code: string, text = 'x') => Object.assign(new Error(text), { code })
const missing = (syscall: string) => Object.assign(thrown('ENOENT'), { syscall })

test('says whose fault it is', () => {
  const rows = [
    ['28P01', 'settings', /refused the password/],
    ['25006', 'away', /the database is read-only/],
    ['53100', 'room', /disk of the database is full/],
    ['22021', 'rows', /cannot store this/],
    ['23505', 'rows', /cannot store this/],
    ['ECONNREFUSED', 'away', /nothing answers/],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'settings', /another name/],
    ['pooler', 'settings', /PgBouncer/],
    ['57014', 'late', /did not finish in time/],
    ['42704', 'settings', /lacks a setting/],
    ['XX000', 'away', /does not answer \(x\)/],
  ] as const
  for (const [code, kind, words] of rows) {
    const trouble = describePostgresError(thrown(code))
    assert.is(trouble.kind, kind, code)
    assert.match(trouble.message, words)
    assert.ok(trouble.hint.length > 10, code)
  }
})

test('a socket that is not there, and a certificate that is not', () => {
  assert.is(describePostgresError(missing('connect')).kind, 'away')
  assert.is(describePostgresError(missing('open')).kind, 'settings')
})

test('anything else that is thrown is a database that does not answer', () => {
  assert.is(describePostgresError('gone').kind, 'away')
  assert.is(describePostgresError(new Error('Connection terminated unexpectedly')).kind, 'away')
  const tried = new AggregateError([thrown('ECONNREFUSED', 'connect ::1')], '')
  assert.match(describePostgresError(tried).message, 'connect ::1')
  assert.is(
    describePostgresError(new Error('The server does not support SSL connections')).kind,
    'settings',
  )
})

test.run()
