import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { chooseCoding } from '#kit/web/answers/rules/content-coding.ts'

const test = suite('Accept-Encoding')

test('the heaviest weight wins, brotli where they are equal', () => {
  const rows = [
    [null, null],
    ['', null],
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip', 'gzip'],
    ['x-gzip', 'gzip'],
    ['GZIP', 'gzip'],
    ['br;q=0.5, gzip;q=0.8', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
    ['gzip;q=0, br;q=0.001', 'br'],
    ['*', 'br'],
    ['*;q=0.1, br;q=0', 'gzip'],
    ['gzip;q=0', null],
    ['*;q=0', null],
    ['deflate, zstd', null],
    ['identity', null],
    ['identity;q=0.5, gzip', 'gzip'],
    ['identity, gzip;q=0.5', null],
    ['gzip; q=1.0', 'gzip'],
    ['gzip;q=2', null],
    ['gzip;q=-1, br;q=x', null],
    [',,;q=1,gzip;;', 'gzip'],
    [`${'x,'.repeat(5000)}gzip`, null],
  ] as const
  for (const [header, coding] of rows)
    assert.is(chooseCoding(header).coding, coding, String(header))
})

test('who refuses plain bytes gets none, where another coding is accepted', () => {
  const rows = [
    ['gzip, identity;q=0', true],
    ['gzip, *;q=0', true],
    ['gzip', false],
    ['gzip, identity;q=0.1', false],
    ['identity;q=0', false],
    ['*;q=0', false],
  ] as const
  for (const [header, isRequired] of rows) {
    assert.is(chooseCoding(header).isRequired, isRequired, header)
  }
})

test.run()
