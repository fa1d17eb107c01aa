//! Private functions from a stream.
//!
//! The walk of a record, one room a step; `pipeline.rs` shows it, a step a line:
//!
//! ```text
//! Batch --> Window --> Exact --> Noisy --> Sealed --> Paid --> published
//! source    window     targets   mechanism targets    ledger   sink
//! ```
//!
//! Five invariants carry the promise:
//!
//! 1. Bounded before it is summed: a record is mapped into the public domain and capped before it touches any state.
//! 2. Exact, then noisy: sums are integers; noise is drawn exactly on the same grid; `mechanism` is the only door.
//! 3. What leaves was paid for, byte for byte: the ledger takes only [`targets::Sealed`], which is made of noisy values; the sink
//!    takes only [`ledger::Paid`], and only the ledger makes one.
//! 4. The schedule knows no data: every window is released for every declared key, with the same shape, until its policy says
//!    in advance that it is over.
//! 5. Spent is spent: a ledger that is missing, damaged, a copy or behind the witness stops the worker.
//!
//! The crate is on its way to be several: `tests/it/layers.rs` lists where each module goes, and keeps true that none imports a
//! crate that is not below its own. None but the program imports `config`: it hands each room its own parameters. `targets`,
//! `mechanism`, `accountant` and `synopsis` do no I/O, read no clock and log nothing.
//!
//! Papers, by the key used in docstrings: `[AR17]` Alda and Rubinstein, The Bernstein Mechanism, AAAI 2017;
//! `[RA17]` Rubinstein and Alda, Pain-Free Random Differential Privacy with Sensitivity Sampling, ICML 2017;
//! `[CKS20]` Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy, NeurIPS 2020;
//! `[WFZW13]` Wang, Fan, Zhang and Wang, Efficient Algorithm for Privately Releasing Smooth Queries, NIPS 2013;
//! `[BS16]` Bun and Steinke, Concentrated Differential Privacy, TCC 2016;
//! `[DMNS06]` Dwork, McSherry, Nissim and Smith, Calibrating Noise to Sensitivity, TCC 2006;
//! `[DKMMN06]` Dwork, Kenthapadi, McSherry, Mironov and Naor, Our Data, Ourselves, EUROCRYPT 2006;
//! `[KOV15]` Kairouz, Oh and Viswanath, The Composition Theorem for Differential Privacy, ICML 2015;
//! `[RRUV16]` Rogers, Roth, Ullman and Vadhan, Privacy Odometers and Filters, NeurIPS 2016;
//! `[FZ21]` Feldman and Zrnic, Individual Privacy Accounting via a Renyi Filter, NeurIPS 2021;
//! `[WRRW23]` Whitehouse, Ramdas, Rogers and Wu, Fully Adaptive Composition in Differential Privacy, ICML 2023;
//! `[Aye55]` Ayer, Brunk, Ewing, Reid and Silverman, An Empirical Distribution Function for Sampling with Incomplete
//! Information, Annals of Mathematical Statistics 1955;
//! `[BW18]` Balle and Wang, Improving the Gaussian Mechanism for Differential Privacy, ICML 2018;
//! `[Cha07]` Chapelle, Training a Support Vector Machine in the Primal, Neural Computation 2007;
//! `[CSS11]` Chan, Shi and Song, Private and Continual Release of Statistics, ACM TISSEC 2011;
//! `[DGKKM22]` Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, Connect the Dots, PoPETs 2022;
//! `[DMPST24]` Dvijotham, McMahan, Pillutla, Steinke and Thakurta, Efficient and Near-Optimal Noise Generation for
//! Streaming Differential Privacy, FOCS 2024;
//! `[DNPR10]` Dwork, Naor, Pitassi and Rothblum, Differential Privacy under Continual Observation, STOC 2010;
//! `[DR14]` Dwork and Roth, The Algorithmic Foundations of Differential Privacy, 2014;
//! `[DRS22]` Dong, Roth and Su, Gaussian Differential Privacy, JRSS B 2022;
//! `[DRV10]` Dwork, Rothblum and Vadhan, Boosting and Differential Privacy, FOCS 2010;
//! `[DSW05]` De Marchi, Schaback and Wendland, Near-Optimal Data-Independent Point Locations for Radial Basis Function
//! Interpolation, 2005;
//! `[EZ64]` Ehlich and Zeller, Schwankung von Polynomen zwischen Gitterpunkten, Mathematische Zeitschrift 1964;
//! `[FS01]` Fine and Scheinberg, Efficient SVM Training Using Low-Rank Kernel Representations, JMLR 2001;
//! `[GG98]` Gerstner and Griebel, Numerical Integration Using Sparse Grids, Numerical Algorithms 1998;
//! `[Hig02]` Higham, Accuracy and Stability of Numerical Algorithms, 2002;
//! `[Hon15]` Honaker, Efficient Use of Differentially Private Binary Trees, TPDP 2015;
//! `[HRW13]` Hall, Rinaldo and Wasserman, Differential Privacy for Functions and Functional Data, JMLR 2013;
//! `[HT10]` Hardt and Talwar, On the Geometry of Differential Privacy, STOC 2010;
//! `[Kar16]` Karney, Sampling Exactly from the Normal Distribution, ACM TOMS 2016;
//! `[KTH22]` Koskela, Tobaben and Honkela, Individual Privacy Accounting with Gaussian Differential Privacy, 2022;
//! `[Leb75]` Lebourg, Valeur moyenne pour gradient généralisé, 1975;
//! `[Lem19]` Lemire, Fast Random Integer Generation in an Interval, ACM TOMACS 2019;
//! `[McS09]` McSherry, Privacy Integrated Queries, SIGMOD 2009;
//! `[Mir12]` Mironov, On Significance of the Least Significant Bits for Differential Privacy, CCS 2012;
//! `[MS20]` McKenna and Sheldon, Permute-and-Flip, NeurIPS 2020;
//! `[Nes04]` Nesterov, Introductory Lectures on Convex Optimization, 2004;
//! `[Neu51]` von Neumann, Various Techniques Used in Connection with Random Digits, 1951;
//! `[PS11]` Pazouki and Schaback, Bases for Kernel-Based Spaces, 2011;
//! `[SRB11]` Schmidt, Le Roux and Bach, Convergence Rates of Inexact Proximal-Gradient Methods, NIPS 2011;
//! `[ST22]` Smith and Thakurta, Fully Adaptive Composition for Gaussian Differential Privacy, 2022;
//! `[ZDW22]` Zhu, Dong and Wang, Optimal Accounting of Differential Privacy via Characteristic Function, AISTATS 2022.
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::missing_errors_doc,
        clippy::panic,
        clippy::todo,
        clippy::unimplemented,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

pub mod cli;
