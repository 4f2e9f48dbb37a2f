/** Whether an image starts on a machine: ten answers, each held against what firmware does in QEMU; all in pnpm bench:fits. */
import { mkdtempDisposableSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Firmware, isWrong, preparePairs } from '#test/support/vm/boot-pairs.ts'

const test = suite('whether an image starts, against firmware')
const folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-will-it-boot-'))
test.after(() => folder.remove())
const hold = preparePairs(folder.path)

const PAIRS: readonly (readonly [image: string, firmware: Firmware, answer: string])[] = [
  ['BIOS code, MBR', 'BIOS', 'boots'],
  ['BIOS code, MBR', 'UEFI', 'refused'],
  ['unsigned, code of Windows', 'BIOS', 'unknown'],
  ['unsigned', 'UEFI', 'boots'],
  ['unsigned', '2023', 'refused'],
  ['own and a stranger', 'own', 'boots'],
  ['Debian, both', '2011', 'boots'],
  ['Debian, 2011', '2023', 'refused'],
  ['Debian, 2023', '2023', 'boots'],
  ['Debian, both', 'own', 'refused'],
]

for (const [image, firmware, answer] of PAIRS)
  test(`${image} image, ${firmware} firmware: the answer is what happens`, async () => {
    const pair = await hold(image, firmware)
    assert.is(pair.verdict.answer, answer, JSON.stringify(pair.verdict))
    assert.not(isWrong(pair), JSON.stringify(pair))
  })

test.run()
