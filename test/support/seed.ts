/** What tests that kill again and again draw from: the day's date, so that each day kills at other moments. */
import { createRandom } from './collect.ts'

/** FLASHER_TEST_SEED repeats the draw of another day. */
const SEED = Number(
  process.env['FLASHER_TEST_SEED'] || new Date().toISOString().slice(0, 10).replaceAll('-', ''),
)

/** Rounds of each such test; FLASHER_TEST_KILLS=100 for a thorough run. */
export const KILLS = Number(process.env['FLASHER_TEST_KILLS'] || 4)

let isTold = false

/** Numbers from 0 to 1, the same all day. `salt` tells the draws of several tests apart. */
export function createSeededRandom(salt: number): () => number {
  if (!isTold) console.log(`FLASHER_TEST_SEED=${SEED} repeats these kills`)
  isTold = true
  return createRandom(SEED + salt)
}
