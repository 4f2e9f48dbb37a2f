/** The events page and its filter. */
export const EVENTS = {
  csv: 'Download CSV',
  json: 'Download JSON',
  /** What a list holds, for screen readers; `{day}`: such as \"Today\". */
  list: 'Events, newest first: {day}',
  days: { today: 'Today', yesterday: 'Yesterday' },
  acknowledged: '{count} acknowledged.',
  empty: {
    calm: {
      title: 'Nothing needs attention',
      text: 'Unacknowledged failures and resets are listed here.',
    },
    none: {
      title: 'No events',
      text: 'Everything that machines and operators do is recorded here.',
    },
    unmatched: {
      title: 'No matching events',
      text: 'Remove a filter or clear the search.',
      all: 'Show all events',
    },
  },
  selection: {
    button: 'Acknowledge selected',
    all: { one: 'Acknowledge the one on this page', other: 'Acknowledge all {count} on this page' },
    note: 'Acknowledge what you have dealt with.',
    none: 'No event was selected, so none was acknowledged.',
    select: 'Select event {id}',
    acknowledged: 'Acknowledged',
  },
  filter: {
    label: 'Search events',
    placeholder: 'MAC, address, kind or text',
    subject: 'Events about',
    subjects: {
      '': 'Everything',
      machine: 'Machines',
      batch: 'Batches',
      netboot: 'Netboot',
      catalog: 'Images',
      backup: 'Backups',
      settings: 'Settings',
      auth: 'Logins and tokens',
      system: 'Server',
    },
    button: 'Search',
    views: {
      label: 'Views',
      all: 'All',
      attention: 'Needs attention',
      failures: 'Failures',
      erased: 'Erased last week',
    },
    linked: {
      kind: 'Kind',
      subject_id: 'About',
      batch: 'Batch',
      actor: 'By',
      person: 'Person',
      source_ip: 'Address',
    },
    chip: '{title}: {value}',
    remove: 'Remove this filter',
  },
  row: {
    attention: 'needs attention',
    by: 'by {actor}',
    armedBy: 'armed by {actor}',
    from: 'from {address}',
    details: 'Details',
    earlier: {
      one: '{count} earlier step of this machine',
      other: '{count} earlier steps of this machine',
    },
    more: 'and {count} more, see the details',
    /** `{run}`: image and disk. */
    run: 'Run: {run}',
    /** Read out before and after the arrow of a change. */
    before: 'from',
    after: 'to',
  },
} as const
