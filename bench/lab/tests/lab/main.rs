//! The laboratory from its users' view: reports, comparisons, advice. One program, so that it is
//! linked once. Tests that open a page need Chromium, and say so if it is missing.

/// Made-up analyses, and pages opened in a browser.
mod page {
    pub mod ask;
    pub mod browser;
    pub mod dom;
    pub mod fan;
    pub mod fixture;
    pub mod flow;
    pub mod lines;
    pub mod machine;
    pub mod maker;
    pub mod marks;
    pub mod published;
    pub mod robot;
    pub mod sides;
    pub mod tables;
    pub mod timeline;
}

mod advice;
mod compare;
mod compare_page;
mod compare_rate;
mod glance;
mod pictures;
mod report_clocks;
mod report_curves;
mod report_flow;
mod report_formats;
mod report_imported;
mod report_layout;
mod report_page;
mod report_pareto;
mod report_publish;
mod report_published;
mod report_repeats;
mod report_streams;
mod report_sweep;
mod report_timeline;
mod scorecard;
mod trend;
mod verdicts;
