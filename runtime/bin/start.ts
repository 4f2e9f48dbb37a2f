/** Starts the main thing there is (`pnpm start`): for now, a screen of what can be run. */
import { stdout } from 'node:process'

const { renderOverview } = await import('../lines/earlier/overview.ts')
stdout.write(await renderOverview(stdout.columns ?? 80))
