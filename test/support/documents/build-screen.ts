/** pnpm docs:build: builds the ISO, and records what the build says of it as the screen `build` of docs/images.md. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { readScreens, showScreens, writeScreens } from './screens.ts'

const PAGE = 'docs/images.md'
const argv = ['build/images.ts', 'usb-pc', '--level', 'dev']
const said = execFileSync(process.execPath, argv, {
  encoding: 'utf8',
  env: { ...process.env, CI: 'true', NO_COLOR: '1' },
  stdio: ['ignore', 'pipe', 'inherit'],
})
// What is under way is a line of its own where nothing can be drawn anew.
const screen = said
  .split('\n')
  .filter((line) => !line.startsWith('·'))
  .join('\n')
  .trim()
const screens = new Map([...readScreens(), ['build', screen]])
writeScreens(screens)
writeFileSync(PAGE, showScreens(readFileSync(PAGE, 'utf8'), screens))
execFileSync('node_modules/.bin/oxfmt', [PAGE, 'docs/pictures/screens.json'])
