import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { measureBzip2 } from '#engine/image/rules/bzip2.ts'
import { makeContent, pipeThrough } from '#test/support/disk/compressed.ts'

const test = suite('bzip2')

const wordsOf = (head: Buffer) => {
  const step = measureBzip2(head)
  return step.kind === 'refused' ? step.refusal : step
}

test('real files of every level, empty ones too', () => {
  for (const content of [makeContent(1000), Buffer.alloc(0)]) {
    for (const level of [1, 5, 9]) {
      assert.equal(wordsOf(pipeThrough(['bzip2', '-c', `-${level}`], content)), {
        kind: 'known',
        virtual: { kind: 'unknown' },
      })
    }
  }
})

test('what is not bzip2 is refused', () => {
  const file = pipeThrough(['bzip2', '-c'], makeContent(1000))
  assert.is(wordsOf(file.subarray(0, 9)), 'it ends within the first bytes of its bzip2 data')
  assert.is(wordsOf(Buffer.from('BZhello, there')), 'no bzip2 data in it')
  assert.is(wordsOf(Buffer.from('BZh0AY&SY12345')), 'no bzip2 data in it')
  assert.is(wordsOf(Buffer.from('BZh9 and words')), 'its first bzip2 block is damaged')
})

test('fuzz: any bytes are a header or none', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 20 }), (bytes) => {
      wordsOf(Buffer.from(bytes))
      wordsOf(Buffer.concat([Buffer.from('BZh9'), bytes]))
    }),
  )
})

test.run()
