/** The dashboard, in English. */
export const DASHBOARD = {
  title: 'Dashboard',
  numbers: {
    machines: 'Machines',
    running: 'Running',
    failed: 'Failed in 24 hours',
    attention: 'Need attention',
    unassigned: 'Not configured',
    images: 'Images',
  },
  running: 'Running now',
  failures: { title: 'Failed in 24 hours', all: 'All failed runs' },
  attention: {
    title: 'Needs attention',
    all: 'All {count}',
    none: 'Nothing needs attention.',
    neverSeen: 'never seen',
    configure: 'Configure',
    open: 'Open',
  },
  events: { title: 'Latest events', all: 'All events' },
  empty: {
    title: 'No machines yet',
    text: 'Boot one from the network and it appears here.',
    action: 'Set up DHCP',
  },
  chart: {
    title: 'Flashes in the last 30 days',
    none: 'None in 30 days',
    summary: '{total} in 30 days, at most {max} a day',
    day: '{date}: {count}',
    today: 'today',
  },
  setup: {
    done: 'Ready to boot machines',
    title: 'Setup: {done} of {total} done',
    states: {
      ready: 'ready',
      attention: 'attention',
      missing: 'missing',
      unknown: 'not seen yet',
    },
  },
} as const
